-- A store as version 7 wrote it, with a worker that was preempted during the second operator. Never changed.
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
INSERT INTO "baseline" VALUES(1,1,1,2.0,0.2,'2026-11-23T23:41:14.132285Z','df5a5dfc5e205fd80186f0c694824790');
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
INSERT INTO "driver" VALUES(1,'96a975d0b4661a8c:8798:8251664:1',1,'2026-11-23T23:41:14.081637Z','2026-11-23T23:41:14.081637Z','2026-11-23T23:41:14.184574Z','19ca7723a6830a7c03287073f5cf8673');
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
INSERT INTO "evaluation" VALUES(1,1,'4b73727c43cb49e1acd485a00238dbf0','{"epochs":3,"lr":0.1}','holdout','16px',5,'ok','',0.875,12345,678,'{"reduce":2,"unfold":1}',2.5,'{"losses":[2.0,1.0]}',1,'2026-11-23T23:41:14.130655Z',0,'1fe02d4ec62c24d8f3f6f6e9c327cc0f');
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
INSERT INTO "event" VALUES(1,1,'started','{}','2026-11-23T23:41:14.059222Z','{}','bc1f05e7e7e8c1a72755c7d77f70a263');
INSERT INTO "event" VALUES(1,2,'asked','{"ask":1,"proposal":1,"seen":1}','2026-11-23T23:41:14.096189Z','{"operator":{"1":"f6ded51087db374baede864346420a19"}}','4850463fe19ddb321f89bba8083d30b0');
INSERT INTO "event" VALUES(1,3,'asked','{"ask":2,"proposal":2,"seen":2}','2026-11-23T23:41:14.105987Z','{"operator":{"2":"00e7b7e7b2e2d3aff829272735a12348"}}','866ca3719ec1b79377b7714ff97840e5');
INSERT INTO "event" VALUES(1,4,'told','{"ask":1,"proposal":1,"status":"ok"}','2026-11-23T23:41:14.146121Z','{"baseline":{"1":"df5a5dfc5e205fd80186f0c694824790"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"1":"1fe02d4ec62c24d8f3f6f6e9c327cc0f"},"measurement":{"1":"5758f8884dc020d44bab6b8f0bdf43c0"},"verification":{"1":"55f92e0eab55a6961a492c1fdad3454e"}}','da6c5e55762e6484f58ef15f843063a8');
INSERT INTO "event" VALUES(1,5,'failed','{"ask":2,"failure":"crash","proposal":2,"reason":"crash: SIGSEGV"}','2026-11-23T23:41:14.166946Z','{}','a5cc04e6a488c23657c65036776e9a77');
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
INSERT INTO "lease" VALUES(1,1,0,'96a975d0b4661a8c:8798:8251664:1','2026-11-23T23:41:14.117309Z','2026-11-23T23:41:14.145553Z','answered','df6fd6d26da325e8e292eade3c7ca45f');
INSERT INTO "lease" VALUES(2,2,0,'96a975d0b4661a8c:8798:8251664:1','2026-11-23T23:41:14.161633Z','2026-11-23T23:41:14.175947Z','preempted','fec5990eef67b509c17188e5268e7f44');
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
INSERT INTO "measurement" VALUES(1,1,1,'5ec7e1',1,1,1,'a processor',1.5,0.1,0.75,1,20,1,'2026-11-23T23:41:14.132617Z','5758f8884dc020d44bab6b8f0bdf43c0');
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
INSERT INTO "operator" VALUES(1,1,'key 1','operator 1','32773323f8f8e6e5ddcaeaca5edf852c',0,'f6ded51087db374baede864346420a19');
INSERT INTO "operator" VALUES(2,1,'key 2','operator 2','e9173d57066122dece15b80f5805e870',0,'00e7b7e7b2e2d3aff829272735a12348');
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
INSERT INTO "proposal" VALUES(1,1,1,'operator',1,'told',NULL,NULL,'2026-11-23T23:41:14.095441Z',1,0,'598cad5c865a0601500ba4f3820c9b3e');
INSERT INTO "proposal" VALUES(2,1,2,'operator',2,'asked',NULL,NULL,'2026-11-23T23:41:14.105725Z',0,0,'0bfa513ea95162c8ff36e0b086b136a4');
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
INSERT INTO "quarantine" VALUES(1,2,1,'crash','crash: SIGSEGV','2026-11-23T23:41:14.166388Z','1d572ebb2b602246dd2ff9139a809f27');
CREATE TABLE specification (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	content TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "specification" VALUES(1,'5bec','{"input":"[H]"}','02b1cf6e9b23fe6978e8ee89edbf1f64');
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
INSERT INTO "study" VALUES(1,'old',1,'{"baseline":true,"evaluations":3}',3,'2026-11-23T23:41:14.039561Z','170d82e66f1a9793c15a90caa34fe286',5,'a5cc04e6a488c23657c65036776e9a77');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	definitions TEXT DEFAULT '{}' NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(7,'0.1.0','2026-11-23T23:41:14.006472Z','{"index baseline_by_evaluation":"34fa253bee50205cd23915da99a4149f","index lease_by_proposal":"6cf02c4ef253585544f85bbc206429dc","index measurement_by_evaluation":"46268b813b9b6fc229807c030dfccfc4","index operator_by_key":"3e240562881aff64f23cf6bb45cd5c40","index proposal_by_state":"78ff6c936bd67c162db0ed3188fbbc81","table baseline":"ce38f51b20ef2276b8f08df8949277a1","table driver":"c223b7a315f5fdb878b175b6db6f71fc","table environment":"fd11928b37d63a7abcd4550a989cacda","table evaluation":"bdede18fa20a9d569ddb343082993b8c","table event":"e0625dfd28005b2f07e478869c274135","table lease":"cdc21c113bc3218b84102db2d98daf5a","table measurement":"bb800eca7bd3c9d68ca6f60f43156e79","table operator":"8c94debdb34688988e196d48fb1fc5ba","table proposal":"89eb38fe79adb3908c1c0db7bb022b43","table quarantine":"410b6c676c440f58dd9a38d4a1b8c52f","table specification":"d96d20f9f5fec65b4cb9d26a53278e5c","table study":"a0466c33ff5bf898de1896be0f67492c","table syno_schema":"818379cb2b7a3a74fd05c7953b1c26cf","table verification":"5482b1db7829a7161ae1e80612fcc36e","table worker":"f24b912b85234d9bc8bd05d820c0f8c7"}','d20fe505d4bd583a8446ef53fc272ceb');
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
INSERT INTO "verification" VALUES(1,1,'5ec7e1','[{"C_in":4,"H":8}]','pytorch',3,1,1.0e-07,1,'2026-11-23T23:41:14.131676Z','55f92e0eab55a6961a492c1fdad3454e');
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
INSERT INTO "worker" VALUES(1,'96a975d0b4661a8c:8798:8251664:1','["jetson"]',1,'2026-11-23T23:41:14.071381Z','2026-11-23T23:41:14.071381Z','2026-11-23T23:41:14.188854Z','1369dfc1e030c871d105fafbaa43f7c8');
CREATE INDEX lease_by_proposal ON lease (proposal_id);
CREATE INDEX operator_by_key ON operator ("key");
CREATE INDEX proposal_by_state ON proposal (study_id, state);
CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id);
CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id);
COMMIT;
