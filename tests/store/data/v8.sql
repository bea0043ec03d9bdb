-- A store as version 8 wrote it, with an adaptation whose findings only the log knows. Never changed.
BEGIN TRANSACTION;
CREATE TABLE baseline (
	id INTEGER NOT NULL, 
	evaluation_id INTEGER NOT NULL, 
	environment_id INTEGER NOT NULL, 
	median_ms FLOAT NOT NULL, 
	spread_ms FLOAT NOT NULL, 
	created TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluation (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "baseline" VALUES(1,1,1,2.0,0.2,'2026-11-26T21:16:18.533782Z','5d2fabcc6ae199ebb665c322c41d1743');
INSERT INTO "baseline" VALUES(2,2,1,2.0,0.2,'2026-11-26T21:16:18.588622Z','36e6842ead23a7e6d109976900b7cf39');
CREATE TABLE distrust (
	study_id INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	created TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id, worker), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
CREATE TABLE driver (
	study_id INTEGER NOT NULL, 
	holder TEXT NOT NULL, 
	token INTEGER NOT NULL, 
	taken TEXT NOT NULL, 
	heartbeat TEXT NOT NULL, 
	ended TEXT, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
CREATE TABLE environment (
	id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	device TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	libraries TEXT NOT NULL, 
	commit_hash TEXT NOT NULL, 
	threads INTEGER NOT NULL, 
	rules TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
INSERT INTO "environment" VALUES(1,'adb172167b78d8c5de62df85ec8721f2','a processor','Linux','{"torch":"2.13.0"}','0123abcd',1,'1','8c8eece0256205967143a45164fde163');
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
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (proposal_id, recipe_digest, split, rung, seed), 
	CHECK (status IN ('ok', 'error', 'timeout', 'rejected')), 
	FOREIGN KEY(proposal_id) REFERENCES proposal (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "evaluation" VALUES(1,1,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','',0,'ok','',0.9,20000,NULL,'{}',3.0,'{}',1,'2026-11-26T21:16:18.533782Z',0,'b484c827f06b92e1371ef19f3633fad8');
INSERT INTO "evaluation" VALUES(2,2,'4b73727c43cb49e1acd485a00238dbf0','{"epochs":3,"lr":0.1}','holdout','16px',5,'ok','',0.875,12345,678,'{"reduce":2,"unfold":1}',2.5,'{"losses":[2.0,1.0]}',1,'2026-11-26T21:16:18.588622Z',0,'9a52af3e9396f0b3a1934e2e6b1cb4e6');
CREATE TABLE event (
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	data TEXT NOT NULL, 
	created TEXT NOT NULL, 
	stored TEXT DEFAULT '{}' NOT NULL, 
	digest TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id, sequence), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
INSERT INTO "event" VALUES(1,1,'asked','{"ask":0,"proposal":1}','2026-11-26T21:16:18.514998Z','{}','69f27e9049d629ea51426e34d569933c');
INSERT INTO "event" VALUES(1,2,'told','{"ask":0,"proposal":1,"status":"ok"}','2026-11-26T21:16:18.533782Z','{"baseline":{"1":"5d2fabcc6ae199ebb665c322c41d1743"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"1":"b484c827f06b92e1371ef19f3633fad8"}}','e953883390c9fef4661e4bab5eb808b8');
INSERT INTO "event" VALUES(1,3,'asked','{"ask":1,"proposal":2}','2026-11-26T21:16:18.565182Z','{"operator":{"1":"fb8d07d3d52e79a26ce7acc19da0dd28"}}','6f42c9a2cf222edc3860f9a5c1fcd016');
INSERT INTO "event" VALUES(1,4,'told','{"ask":1,"proposal":2,"status":"ok"}','2026-11-26T21:16:18.588622Z','{"baseline":{"2":"36e6842ead23a7e6d109976900b7cf39"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"2":"9a52af3e9396f0b3a1934e2e6b1cb4e6"},"measurement":{"1":"fa63c7366bc0a9d0da5fb3735469cfb4"},"verification":{"1":"bf45b58db1c4b965499a0b4a9a1ac5a2"}}','e88125fac19c3543fb18729ce32cd209');
INSERT INTO "event" VALUES(2,1,'started','{}','2026-11-26T21:16:18.629141Z','{}','ddbb822bdd8ef56ce5fdd41abd827b87');
INSERT INTO "event" VALUES(2,2,'finding','{"key":"","value":{"value":0.9},"what":"original"}','2026-11-26T21:16:18.647602Z','{}','cbc862d9006b2fdc94a5cfb1956088d3');
INSERT INTO "event" VALUES(2,3,'finding','{"key":"a slot","value":[1.5,2],"what":"fit"}','2026-11-26T21:16:18.659849Z','{}','68f70fcf168dd6d5a61891f7958129ba');
CREATE TABLE lease (
	id INTEGER NOT NULL, 
	proposal_id INTEGER NOT NULL, 
	rung_index INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	taken TEXT NOT NULL, 
	ended TEXT, 
	ending TEXT, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "lease" VALUES(1,1,0,'53fed53bc760ebc2:30208:437645:1','2026-11-26T21:16:18.514998Z','2026-11-26T21:16:18.533782Z','answered','a7c957ea7273300a21d1d5c0b85b6d12');
INSERT INTO "lease" VALUES(2,2,0,'53fed53bc760ebc2:30208:437645:1','2026-11-26T21:16:18.565182Z','2026-11-26T21:16:18.588622Z','answered','9350eb592eeefb76c00233249eee7421');
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
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(verification_id, source_hash, passed) REFERENCES verification (id, source_hash, passed), 
	CHECK (passed), 
	FOREIGN KEY(evaluation_id) REFERENCES evaluation (id), 
	FOREIGN KEY(baseline_id) REFERENCES baseline (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "measurement" VALUES(1,2,1,'5ec7e1',1,2,1,'a processor',1.5,0.1,0.75,1,20,1,'2026-11-26T21:16:18.588622Z','fa63c7366bc0a9d0da5fb3735469cfb4');
CREATE TABLE operator (
	id INTEGER NOT NULL, 
	specification_id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	text TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	key_version INTEGER DEFAULT 0 NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (specification_id, digest), 
	FOREIGN KEY(specification_id) REFERENCES specification (id)
);
INSERT INTO "operator" VALUES(1,1,'k1','operator 1','32773323f8f8e6e5ddcaeaca5edf852c',0,'fb8d07d3d52e79a26ce7acc19da0dd28');
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
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (study_id, ask), 
	CHECK ((kind = 'baseline') = (operator_id IS NULL)), 
	FOREIGN KEY(study_id) REFERENCES study (id), 
	FOREIGN KEY(operator_id) REFERENCES operator (id)
);
INSERT INTO "proposal" VALUES(1,1,0,'baseline',NULL,'told',NULL,NULL,'2026-11-26T21:16:18.514998Z',1,0,'ba4b5617a387a7c6896e7c698877c922');
INSERT INTO "proposal" VALUES(2,1,1,'operator',1,'told',NULL,NULL,'2026-11-26T21:16:18.565182Z',1,0,'4dfbe855e9ee5f8d3efa9206d7c82f1b');
CREATE TABLE quarantine (
	study_id INTEGER NOT NULL, 
	operator_id INTEGER NOT NULL, 
	failures INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	updated TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id, operator_id), 
	FOREIGN KEY(study_id) REFERENCES study (id), 
	FOREIGN KEY(operator_id) REFERENCES operator (id)
);
CREATE TABLE specification (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	content TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "specification" VALUES(1,'5bec','{"input":"[H]"}','02b1cf6e9b23fe6978e8ee89edbf1f64');
INSERT INTO "specification" VALUES(2,'adaptation','{"input":"[N]","output":"[N]"}','d73e7d603a77d87a9f460f0bdc3906ff');
CREATE TABLE spot_check (
	study_id INTEGER NOT NULL, 
	sequence INTEGER NOT NULL, 
	proposal_id INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	created TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	lease TEXT, 
	heartbeat TEXT, 
	checker TEXT, 
	first TEXT, 
	second TEXT, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id, sequence), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
CREATE TABLE study (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	specification_id INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	seed BIGINT NOT NULL, 
	created TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	events INTEGER DEFAULT 0 NOT NULL, 
	head TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name), 
	FOREIGN KEY(specification_id) REFERENCES specification (id)
);
INSERT INTO "study" VALUES(1,'old',1,'{}',3,'2026-11-26T21:16:18.489656Z','2f01484911baab938d809db4aba15c9a',4,'e88125fac19c3543fb18729ce32cd209');
INSERT INTO "study" VALUES(2,'adapted',2,'{"method":"adaptation","options":{"seeds":1},"seed":0}',0,'2026-11-26T21:16:18.617010Z','c095a0765af93a147f22e7f636843f0d',3,'68f70fcf168dd6d5a61891f7958129ba');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	definitions TEXT DEFAULT '{}' NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(8,'0.1.0','2026-11-26T21:16:18.451444Z','{"index baseline_by_evaluation":"34fa253bee50205cd23915da99a4149f","index lease_by_proposal":"6cf02c4ef253585544f85bbc206429dc","index measurement_by_evaluation":"46268b813b9b6fc229807c030dfccfc4","index operator_by_key":"3e240562881aff64f23cf6bb45cd5c40","index proposal_by_state":"78ff6c936bd67c162db0ed3188fbbc81","index spot_check_by_state":"e6579bd52ff3e1cd976edeb20971f844","table baseline":"ce38f51b20ef2276b8f08df8949277a1","table distrust":"2d9cdd3525e6cd916157e991ad5ed364","table driver":"c223b7a315f5fdb878b175b6db6f71fc","table environment":"fd11928b37d63a7abcd4550a989cacda","table evaluation":"bdede18fa20a9d569ddb343082993b8c","table event":"e0625dfd28005b2f07e478869c274135","table lease":"cdc21c113bc3218b84102db2d98daf5a","table measurement":"bb800eca7bd3c9d68ca6f60f43156e79","table operator":"8c94debdb34688988e196d48fb1fc5ba","table proposal":"89eb38fe79adb3908c1c0db7bb022b43","table quarantine":"410b6c676c440f58dd9a38d4a1b8c52f","table specification":"d96d20f9f5fec65b4cb9d26a53278e5c","table spot_check":"ea53827c65bdfb10a38e1e9971003f7e","table study":"a0466c33ff5bf898de1896be0f67492c","table syno_schema":"818379cb2b7a3a74fd05c7953b1c26cf","table verification":"5482b1db7829a7161ae1e80612fcc36e","table worker":"f24b912b85234d9bc8bd05d820c0f8c7"}','db5c9c007198b660abd30bbc1cc5c611');
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
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (id, source_hash, passed), 
	FOREIGN KEY(operator_id) REFERENCES operator (id), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
INSERT INTO "verification" VALUES(1,1,'5ec7e1','[{"C_in":4,"H":8}]','pytorch',3,1,1.0e-07,1,'2026-11-26T21:16:18.588622Z','bf45b58db1c4b965499a0b4a9a1ac5a2');
CREATE TABLE worker (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	tags TEXT NOT NULL, 
	environment_id INTEGER NOT NULL, 
	started TEXT NOT NULL, 
	heartbeat TEXT NOT NULL, 
	ended TEXT, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name), 
	FOREIGN KEY(environment_id) REFERENCES environment (id)
);
CREATE INDEX lease_by_proposal ON lease (proposal_id);
CREATE INDEX operator_by_key ON operator ("key");
CREATE INDEX proposal_by_state ON proposal (study_id, state);
CREATE INDEX spot_check_by_state ON spot_check (study_id, state);
CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id);
CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id);
COMMIT;
