-- A store as version 9 wrote it, with a worker whose answers were taken back after a spot check. Never changed.
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
INSERT INTO "baseline" VALUES(3,3,1,2.0,0.2,'2026-11-27T01:05:15.048853Z','78dbfdf21e0c13614288362e1d341127');
CREATE TABLE distrust (
	study_id INTEGER NOT NULL, 
	worker TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	created TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (study_id, worker), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
INSERT INTO "distrust" VALUES(1,'53fed53bc760ebc2:18408:1811489:1','in trial 1, it and two other workers found verifications of different code','2026-11-27T01:05:15.054192Z','8cadfdf0cfa46755ff1aa205dff72671');
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
INSERT INTO "evaluation" VALUES(3,1,'4b73727c43cb49e1acd485a00238dbf0','{"epochs":3,"lr":0.1}','holdout','16px',5,'ok','',0.875,12345,678,'{"reduce":2,"unfold":1}',2.5,'{"losses":[2.0,1.0]}',1,'2026-11-27T01:05:15.048853Z',0,'ed615802d994b70b64f2f8e5b6543c2c');
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
INSERT INTO "event" VALUES(1,1,'asked','{"ask":1,"proposal":1}','2026-11-27T01:05:14.976287Z','{"operator":{"1":"3fcc352dd3b4bd922340160954552e52"}}','0cbc3e5ed318fb8ef5d6364a0bafeda4');
INSERT INTO "event" VALUES(1,2,'asked','{"ask":2,"proposal":2}','2026-11-27T01:05:14.980370Z','{"operator":{"2":"152b0ddcd7231313832cccf794bf2308"}}','6ea4a831dfc2418e62de1b2d46075676');
INSERT INTO "event" VALUES(1,3,'asked','{"ask":3,"proposal":3}','2026-11-27T01:05:14.982845Z','{"operator":{"3":"9904fc00284247bf6dfe512451c1f2fc"}}','a86550d47c92c07bf8626cc871385400');
INSERT INTO "event" VALUES(1,4,'told','{"ask":1,"proposal":1,"status":"ok"}','2026-11-27T01:05:14.999475Z','{"baseline":{"1":"52796fb90bba6ce79479334325e2f188"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"1":"af4c3f4dfbd814bd6cb510ff28630eec"},"measurement":{"1":"8667cc0be86ccf9c47e0327d42003adc"},"verification":{"1":"f698b6ff1dcfef2de3882698a47f57ae"}}','394fd61d79a707336583d8400bb14d79');
INSERT INTO "event" VALUES(1,5,'told','{"ask":2,"proposal":2,"status":"ok"}','2026-11-27T01:05:15.010718Z','{"baseline":{"2":"836e1a2eb7635731048f0ac90d35d004"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"2":"14e9c21854e0887dd1cb0f2e181a3042"},"measurement":{"2":"2b366c26844b0608541788b1c1510537"},"verification":{"2":"6d156b0a79a412a691d79f7e2c8ce484"}}','aa71dddff0dd33fe8fb54c01c06c8522');
INSERT INTO "event" VALUES(1,6,'checked','{"answer":{"bindings":[{"C_in":4,"H":8}],"device":"a processor","emitter":"pytorch","latency_ratio":0.75,"macs":12345,"params":678,"primitives":{"reduce":2,"unfold":1},"reason":"","source_hash":"5ec7e1","status":"ok","threads":1,"value":0.875},"ask":1,"proposal":1,"worker":"53fed53bc760ebc2:18408:1811489:2"}','2026-11-27T01:05:15.029251Z','{}','3de7f0eea7bffc9a0874459e0a7e65de');
INSERT INTO "event" VALUES(1,7,'disputed','{"answer":{"bindings":[{"C_in":4,"H":8}],"device":"a processor","emitter":"pytorch","latency_ratio":0.75,"macs":12345,"params":678,"primitives":{"reduce":2,"unfold":1},"reason":"","source_hash":"0000000000000000000000000000000000000000000000000000000000000000","status":"ok","threads":1,"value":1.0},"ask":1,"checker":"53fed53bc760ebc2:18408:1811489:2","proposal":1,"reason":"workers 53fed5:18408 and 53fed5:18408 found verifications of different code","worker":"53fed53bc760ebc2:18408:1811489:1"}','2026-11-27T01:05:15.040553Z','{"removed":[1],"reopened":[1],"taken_back":{"baseline":[1],"measurement":[1],"verification":[1]}}','a9a6cb2ca088a706cbe6fe5a6ff702e1');
INSERT INTO "event" VALUES(1,8,'told','{"ask":1,"proposal":1,"status":"ok"}','2026-11-27T01:05:15.048853Z','{"baseline":{"3":"78dbfdf21e0c13614288362e1d341127"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"3":"ed615802d994b70b64f2f8e5b6543c2c"},"measurement":{"3":"1c87c2a7df59d027b473f5178650f904"},"verification":{"3":"90c1e237c67ebbdccfcf94243cab1b98"}}','dadccdc32a84a7016035e7801203190d');
INSERT INTO "event" VALUES(1,9,'distrusted','{"asks":[2],"reason":"in trial 1, it and two other workers found verifications of different code","worker":"53fed53bc760ebc2:18408:1811489:1"}','2026-11-27T01:05:15.054192Z','{"removed":[2],"reopened":[2],"taken_back":{"baseline":[2],"measurement":[2],"verification":[2]}}','598ab4c97c49a0d136a751f87d778ab4');
CREATE TABLE finding (
	id INTEGER NOT NULL, 
	study_id INTEGER NOT NULL, 
	digest TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (study_id, digest), 
	FOREIGN KEY(study_id) REFERENCES study (id)
);
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
INSERT INTO "lease" VALUES(1,1,0,'53fed53bc760ebc2:18408:1811489:1','2026-11-27T01:05:14.987587Z','2026-11-27T01:05:14.999475Z','answered','f9025a32d3296c3d6c2a75808160795d');
INSERT INTO "lease" VALUES(2,2,0,'53fed53bc760ebc2:18408:1811489:1','2026-11-27T01:05:15.006883Z','2026-11-27T01:05:15.010718Z','answered','f8061124bccf684a3b88ebd1153d16fe');
INSERT INTO "lease" VALUES(3,3,0,'53fed53bc760ebc2:18408:1811489:1','2026-11-27T01:05:15.014196Z','2026-11-27T01:05:15.054192Z','distrusted','b885b19f703c744aa8a63558a910165d');
INSERT INTO "lease" VALUES(4,1,0,'53fed53bc760ebc2:18408:1811489:3','2026-11-27T01:05:15.045093Z','2026-11-27T01:05:15.048853Z','answered','1a7e62765df9f130565912b7cf24016a');
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
INSERT INTO "measurement" VALUES(3,3,3,'5ec7e1',1,3,1,'a processor',1.5,0.1,0.75,1,20,1,'2026-11-27T01:05:15.048853Z','1c87c2a7df59d027b473f5178650f904');
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
INSERT INTO "operator" VALUES(1,1,'key 1','text 1','900a4469df00ccbfd0c145c6d1e4b795',0,'3fcc352dd3b4bd922340160954552e52');
INSERT INTO "operator" VALUES(2,1,'key 2','text 2','ad0387b3bd8652f730ca46d25f9c170a',0,'152b0ddcd7231313832cccf794bf2308');
INSERT INTO "operator" VALUES(3,1,'key 3','text 3','65ca03e4108b9338827ea3b3f28f6a51',0,'9904fc00284247bf6dfe512451c1f2fc');
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
INSERT INTO "proposal" VALUES(1,1,1,'operator',1,'told',NULL,NULL,'2026-11-27T01:05:14.976287Z',1,0,'ebe5aef30562b995fc3e16fbbd0439ba');
INSERT INTO "proposal" VALUES(2,1,2,'operator',2,'asked',NULL,NULL,'2026-11-27T01:05:14.980370Z',0,0,'372d39c18fbcba8afb8f66c27e1c99a6');
INSERT INTO "proposal" VALUES(3,1,3,'operator',3,'asked',NULL,NULL,'2026-11-27T01:05:14.982845Z',1,0,'9513f773022134a92f4e3e65c3fc16e0');
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
INSERT INTO "spot_check" VALUES(1,4,1,'53fed53bc760ebc2:18408:1811489:1','2026-11-27T01:05:15.019810Z','decided',1,NULL,'2026-11-27T01:05:15.023979Z','53fed53bc760ebc2:18408:1811489:2','{"bindings":[{"C_in":4,"H":8}],"device":"a processor","emitter":"pytorch","latency_ratio":0.75,"macs":12345,"params":678,"primitives":{"reduce":2,"unfold":1},"reason":"","source_hash":"0000000000000000000000000000000000000000000000000000000000000000","status":"ok","threads":1,"value":1.0}','{"bindings":[{"C_in":4,"H":8}],"device":"a processor","emitter":"pytorch","latency_ratio":0.75,"macs":12345,"params":678,"primitives":{"reduce":2,"unfold":1},"reason":"","source_hash":"5ec7e1","status":"ok","threads":1,"value":0.875}','99a57a5f0e0be5a7a7c07d8f08329fae');
INSERT INTO "spot_check" VALUES(1,5,2,'53fed53bc760ebc2:18408:1811489:1','2026-11-27T01:05:15.019810Z','taken back',0,NULL,NULL,NULL,NULL,NULL,'06700b7539668cafcbff90d2c3b08c6b');
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
INSERT INTO "study" VALUES(1,'old',1,'{"evaluations":3,"spot_checks":1.0,"spot_tolerance":0.05}',1,'2026-11-27T01:05:14.968427Z','72b032dee8d006eb1d9a092824d8582e',9,'598ab4c97c49a0d136a751f87d778ab4');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	definitions TEXT DEFAULT '{}' NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(9,'0.1.0','2026-11-27T01:05:14.959076Z','{"index baseline_by_evaluation":"34fa253bee50205cd23915da99a4149f","index lease_by_proposal":"6cf02c4ef253585544f85bbc206429dc","index measurement_by_evaluation":"46268b813b9b6fc229807c030dfccfc4","index operator_by_key":"3e240562881aff64f23cf6bb45cd5c40","index proposal_by_state":"78ff6c936bd67c162db0ed3188fbbc81","index spot_check_by_state":"e6579bd52ff3e1cd976edeb20971f844","table baseline":"ce38f51b20ef2276b8f08df8949277a1","table distrust":"2d9cdd3525e6cd916157e991ad5ed364","table driver":"c223b7a315f5fdb878b175b6db6f71fc","table environment":"fd11928b37d63a7abcd4550a989cacda","table evaluation":"bdede18fa20a9d569ddb343082993b8c","table event":"e0625dfd28005b2f07e478869c274135","table finding":"e9402a9eb92a639d4be48beb14bdaf17","table lease":"cdc21c113bc3218b84102db2d98daf5a","table measurement":"bb800eca7bd3c9d68ca6f60f43156e79","table operator":"8c94debdb34688988e196d48fb1fc5ba","table proposal":"89eb38fe79adb3908c1c0db7bb022b43","table quarantine":"410b6c676c440f58dd9a38d4a1b8c52f","table specification":"d96d20f9f5fec65b4cb9d26a53278e5c","table spot_check":"ea53827c65bdfb10a38e1e9971003f7e","table study":"a0466c33ff5bf898de1896be0f67492c","table syno_schema":"818379cb2b7a3a74fd05c7953b1c26cf","table verification":"5482b1db7829a7161ae1e80612fcc36e","table worker":"f24b912b85234d9bc8bd05d820c0f8c7"}','bfeb5c7168bb18d015718da26d8371dd');
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
INSERT INTO "verification" VALUES(3,1,'5ec7e1','[{"C_in":4,"H":8}]','pytorch',3,1,1.0e-07,1,'2026-11-27T01:05:15.048853Z','90c1e237c67ebbdccfcf94243cab1b98');
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
