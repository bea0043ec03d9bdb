-- A store as version 4 wrote it: a ladder, a proposal that is open after its operator was let out of
-- quarantine, one that was interrupted, an evaluation on the test split. Never changed.
BEGIN TRANSACTION;
CREATE TABLE artifact (
	hash TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	content BLOB NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "artifact" VALUES('b91a3bc5e2064d025a8ae122555c96948ec5b4895d53d809c4b66b71a4915133','source',X'696D706F727420746F7263680A','2026-01-05T22:02:46.295924Z');
CREATE TABLE baseline (
	id INTEGER NOT NULL, 
	evaluation_id INTEGER NOT NULL, 
	environment_id INTEGER NOT NULL, 
	median_ms FLOAT NOT NULL, 
	spread_ms FLOAT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluation (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "baseline" VALUES(1,1,1,1.5,0.1,'2026-01-05T22:02:46.004707Z');
INSERT INTO "baseline" VALUES(2,2,1,1.5,0.1,'2026-01-05T22:02:46.058016Z');
INSERT INTO "baseline" VALUES(3,3,1,1.5,0.1,'2026-01-05T22:02:46.111935Z');
CREATE TABLE environment (
	id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	device TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	libraries TEXT NOT NULL, 
	commit_hash TEXT NOT NULL, 
	threads INTEGER NOT NULL, 
	rules TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "environment" VALUES(1,'20610a1f9e1ec2684173020fb614c807','a processor','Linux','{"torch":"2"}','',1,'1');
CREATE TABLE evaluation (
	id INTEGER NOT NULL, 
	proposal_id INTEGER NOT NULL, 
	recipe_digest TEXT NOT NULL, 
	recipe TEXT NOT NULL, 
	split TEXT NOT NULL, 
	rung TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	status TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	accuracy FLOAT, 
	macs BIGINT, 
	params BIGINT, 
	primitives TEXT NOT NULL, 
	seconds FLOAT NOT NULL, 
	details TEXT NOT NULL, 
	environment_id INTEGER NOT NULL, 
	finished TEXT NOT NULL, 
	rung_index INTEGER DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (proposal_id, recipe_digest, split, rung, seed), 
	CHECK (status IN ('ok', 'error', 'timeout', 'rejected')), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "evaluation" VALUES(1,1,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','tiny',0,'ok','',0.9,NULL,NULL,'{}',0.0,'{}',1,'2026-01-05T22:02:45.990038Z',0);
INSERT INTO "evaluation" VALUES(2,2,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','tiny',0,'ok','',0.85,120000,900,'{"contract":1,"reduce":1}',2.0,'{}',1,'2026-01-05T22:02:46.056487Z',0);
INSERT INTO "evaluation" VALUES(3,2,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','small',0,'ok','',0.88,120000,900,'{"contract":1,"reduce":1}',2.0,'{}',1,'2026-01-05T22:02:46.108905Z',1);
INSERT INTO "evaluation" VALUES(4,2,'44136fa355b3678a1146ad16f7e8649e','{}','test','small',0,'ok','',0.5,NULL,NULL,'{}',0.0,'{}',1,'2026-01-05T22:02:46.129718Z',1);
CREATE TABLE event (
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	data TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (study_id, sequence), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
INSERT INTO "event" VALUES(1,1,'started','{}','2026-01-05T22:02:45.930396Z');
INSERT INTO "event" VALUES(1,2,'space','{"digest":"d","keys":2,"operators":2,"rejections":{"pooling":3},"rules":"1"}','2026-01-05T22:02:45.944868Z');
INSERT INTO "event" VALUES(1,3,'asked','{"ask":0,"proposal":1}','2026-01-05T22:02:45.976051Z');
INSERT INTO "event" VALUES(1,4,'told','{"ask":0,"proposal":1,"status":"ok"}','2026-01-05T22:02:46.020086Z');
INSERT INTO "event" VALUES(1,5,'asked','{"ask":1,"proposal":2}','2026-01-05T22:02:46.038590Z');
INSERT INTO "event" VALUES(1,6,'told','{"ask":1,"proposal":2,"status":"ok"}','2026-01-05T22:02:46.071753Z');
INSERT INTO "event" VALUES(1,7,'promoted','{"ask":1,"proposal":2,"rung":1}','2026-01-05T22:02:46.093602Z');
INSERT INTO "event" VALUES(1,8,'told','{"ask":1,"proposal":2,"rung":1,"status":"ok"}','2026-01-05T22:02:46.113036Z');
INSERT INTO "event" VALUES(1,9,'asked','{"ask":2,"proposal":3}','2026-01-05T22:02:46.145598Z');
INSERT INTO "event" VALUES(1,10,'failed','{"ask":2,"failure":"crash","proposal":3,"reason":"SIGSEGV"}','2026-01-05T22:02:46.162929Z');
INSERT INTO "event" VALUES(1,11,'failed','{"ask":2,"failure":"crash","proposal":3,"reason":"SIGBUS"}','2026-01-05T22:02:46.186248Z');
INSERT INTO "event" VALUES(1,12,'told','{"ask":2,"proposal":3,"status":"error"}','2026-01-05T22:02:46.204997Z');
INSERT INTO "event" VALUES(1,13,'released','{"ask":2,"key":"467f3482640a012f88b9a114dfe4ac43","reason":"SIGBUS"}','2026-01-05T22:02:46.254040Z');
INSERT INTO "event" VALUES(1,14,'asked','{"ask":3,"proposal":4}','2026-01-05T22:02:46.270609Z');
INSERT INTO "event" VALUES(1,15,'failed','{"ask":3,"failure":"hang","proposal":4,"reason":"no answer"}','2026-01-05T22:02:46.282834Z');
CREATE TABLE measurement (
	id INTEGER NOT NULL, 
	evaluation_id INTEGER NOT NULL, 
	verification_id INTEGER NOT NULL, 
	source_hash TEXT NOT NULL, 
	passed BOOLEAN NOT NULL, 
	baseline_id INTEGER NOT NULL, 
	environment_id INTEGER NOT NULL, 
	device TEXT NOT NULL, 
	median_ms FLOAT NOT NULL, 
	spread_ms FLOAT NOT NULL, 
	ratio FLOAT NOT NULL, 
	threads INTEGER NOT NULL, 
	repeats INTEGER NOT NULL, 
	batch INTEGER NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(verification_id, source_hash, passed) REFERENCES verification (id, source_hash, passed), 
	CHECK (passed), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluation (id), 
	FOREIGN KEY(baseline_id) REFERENCES baseline (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "measurement" VALUES(1,2,1,'abababababababababababababababab',1,2,1,'a processor',1.2,0.05,7.99999999999999933386e-01,1,20,1,'2026-01-05T22:02:46.058195Z');
INSERT INTO "measurement" VALUES(2,3,2,'abababababababababababababababab',1,3,1,'a processor',1.2,0.05,7.99999999999999933386e-01,1,20,1,'2026-01-05T22:02:46.112160Z');
CREATE TABLE operator (
	id INTEGER NOT NULL, 
	specification_id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	text TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (specification_id, digest), 
	FOREIGN KEY(specification_id) REFERENCES specification (id)
);
INSERT INTO "operator" VALUES(1,1,'285ea8516fc33f1f0d4a7d1ee15d501b','syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
contract o1:drop r0:keep
match o0 r0 o2 o3
','c3b65c6dff3d9cb438fe026552d78d41');
INSERT INTO "operator" VALUES(2,1,'467f3482640a012f88b9a114dfe4ac43','syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce k -> r0
reduce k -> r1
reduce C_in -> r2
contract o1:drop r0:keep r1:keep r2:keep
unfold o2 r0 -> c0
unfold o3 r1 -> c1
match o0 r2 c0 c1
','b4e882d50f72d1183fea2cb47569a4be');
INSERT INTO "operator" VALUES(3,1,'00000000000000000000000000000000','syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> r0
contract o1:drop r0:keep
match o0 r0 o2 o3

','a505a2a9ccb71a9cbff92389416d5405');
CREATE TABLE proposal (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	ask INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	operator_id INTEGER, 
	state TEXT NOT NULL, 
	lease TEXT, 
	heartbeat TEXT, 
	created TEXT NOT NULL, 
	attempts INTEGER DEFAULT 0 NOT NULL, 
	rung_index INTEGER DEFAULT 0 NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (study_id, ask), 
	CHECK ((kind = 'baseline') = (operator_id IS NULL)), 
	FOREIGN KEY(study_id) REFERENCES study (id), 
	FOREIGN KEY(operator_id) REFERENCES operator (id)
);
INSERT INTO "proposal" VALUES(1,1,0,'baseline',NULL,'told',NULL,NULL,'2026-01-05T22:02:45.965734Z',1,0);
INSERT INTO "proposal" VALUES(2,1,1,'operator',1,'told',NULL,NULL,'2026-01-05T22:02:46.036318Z',1,1);
INSERT INTO "proposal" VALUES(3,1,2,'operator',2,'asked',NULL,NULL,'2026-01-05T22:02:46.144354Z',0,0);
INSERT INTO "proposal" VALUES(4,1,3,'operator',3,'asked','gone:1:1:1','2026-01-05T22:02:46.269109Z','2026-01-05T22:02:46.269109Z',1,0);
CREATE TABLE quarantine (
	study_id INTEGER NOT NULL, 
	operator_id INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	updated TEXT NOT NULL, 
	PRIMARY KEY (study_id, operator_id), 
	FOREIGN KEY(study_id) REFERENCES study (id), 
	FOREIGN KEY(operator_id) REFERENCES operator (id)
);
INSERT INTO "quarantine" VALUES(1,3,1,'hang','no answer','2026-01-05T22:02:46.282040Z');
CREATE TABLE specification (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "specification" VALUES(1,'84a179fe45aa2befbcbbc795a42b8a5c','{"bindings":[{"C_in":8,"C_out":8,"H":8},{"C_in":8,"C_out":16,"H":4}],"coefficient":["k=3: 2"],"input":"[N, C_in: unordered, H, H]","layer_macs":[73728.0,18432.0],"limits":{"element_wise_weights":false,"even_windows":false,"max_chain_length":6,"max_depth":12,"max_dropped":2048,"max_joined":8,"max_macs":0,"max_merges":1,"max_params":0,"max_pooling":8,"max_reduction_ratio":4.0,"max_reductions":5,"max_repeat":1,"max_shift_amount":1,"max_shifts":2,"max_size_power":16,"max_size_variables":3,"max_splits":3,"max_strides":0,"max_unfolds":4,"max_weights":2,"max_window":30,"min_fit":1.0,"min_macs":0,"min_params":0,"min_unfold_ratio":1.3,"min_weight_params":1,"negative_shifts":false},"multiplicities":[2,1],"output":"[N, C_out: unordered, H, H]","passed_through":[[0,0]],"primary":["N: 0","C_in: 2","C_out: 4","H: 0"]}');
CREATE TABLE study (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	specification_id INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name), 
	FOREIGN KEY(specification_id) REFERENCES specification (id)
);
INSERT INTO "study" VALUES(1,'old',1,'{"data":"digits","evaluations":4,"model":"resnet-small","seed":7}',7,'2026-01-05T22:02:45.896881Z');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(4,'0.1.0','2026-01-05T22:02:45.840139Z');
CREATE TABLE verification (
	id INTEGER NOT NULL, 
	operator_id INTEGER NOT NULL, 
	source_hash TEXT NOT NULL, 
	bindings TEXT NOT NULL, 
	emitter TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	passed BOOLEAN NOT NULL, 
	max_error FLOAT, 
	environment_id INTEGER NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (id, source_hash, passed), 
	FOREIGN KEY(operator_id) REFERENCES operator (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "verification" VALUES(1,1,'abababababababababababababababab','[{"C_in":8}]','torch',0,1,1.0e-07,1,'2026-01-05T22:02:46.056975Z');
INSERT INTO "verification" VALUES(2,1,'abababababababababababababababab','[{"C_in":8}]','torch',0,1,1.0e-07,1,'2026-01-05T22:02:46.111531Z');
CREATE INDEX operator_by_key ON operator ("key");
CREATE INDEX proposal_by_state ON proposal (study_id, state);
CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id);
CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id);
COMMIT;
