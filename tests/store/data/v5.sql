-- A store as version 5 wrote it, with the table `artifact`. Never changed.
BEGIN TRANSACTION;
CREATE TABLE artifact (
	hash TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	content BLOB NOT NULL, 
	created TEXT NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "artifact" VALUES('b91a3bc5e2064d025a8ae122555c96948ec5b4895d53d809c4b66b71a4915133','source',X'696D706F727420746F7263680A','2026-11-23T02:21:47.073769Z','91e96f0cdc5c1ad62781896d27fbbae8');
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
INSERT INTO "baseline" VALUES(1,1,1,2.0,0.2,'2026-11-23T02:21:47.000376Z','3da6b518d1bab96b8f833dd26ecd2d8f');
INSERT INTO "baseline" VALUES(2,2,1,2.0,0.2,'2026-11-23T02:21:47.050254Z','310d35508560ea42ce0eb607720ca97c');
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
INSERT INTO "evaluation" VALUES(1,1,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','',0,'ok','',0.9,20000,NULL,'{}',3.0,'{}',1,'2026-11-23T02:21:46.999192Z',0,'448d5a0795d419663723032189eb4e5c');
INSERT INTO "evaluation" VALUES(2,2,'4b73727c43cb49e1acd485a00238dbf0','{"epochs":3,"lr":0.1}','holdout','16px',5,'ok','',0.875,12345,678,'{"reduce":2,"unfold":1}',2.5,'{"losses":[2.0,1.0]}',1,'2026-11-23T02:21:47.044517Z',0,'b36ed98c176fc811aedd4a5dd117fa10');
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
INSERT INTO "event" VALUES(1,1,'asked','{"ask":0,"proposal":1}','2026-11-23T02:21:46.980799Z','{}','2f693db4460c6297e0d131fa05aeb839');
INSERT INTO "event" VALUES(1,2,'told','{"ask":0,"proposal":1,"status":"ok"}','2026-11-23T02:21:47.015244Z','{"baseline":{"1":"3da6b518d1bab96b8f833dd26ecd2d8f"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"1":"448d5a0795d419663723032189eb4e5c"}}','0364142bf359fd076fddb16f453fbb2c');
INSERT INTO "event" VALUES(1,3,'asked','{"ask":1,"proposal":2}','2026-11-23T02:21:47.036855Z','{"operator":{"1":"f6ded51087db374baede864346420a19"}}','215cf37700925d0b3bdcc7ddb2d0a859');
INSERT INTO "event" VALUES(1,4,'told','{"ask":1,"proposal":2,"status":"ok"}','2026-11-23T02:21:47.052071Z','{"baseline":{"2":"310d35508560ea42ce0eb607720ca97c"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"2":"b36ed98c176fc811aedd4a5dd117fa10"},"measurement":{"1":"07d2ad79d389edae37b45e3841ff9858"},"verification":{"1":"94e25efe9836361512421b20ff376ea5"}}','62cfae7381fd165273d6d2cd8560ef17');
INSERT INTO "event" VALUES(1,5,'asked','{"ask":2,"proposal":3}','2026-11-23T02:21:47.066826Z','{"operator":{"2":"00e7b7e7b2e2d3aff829272735a12348"}}','14fb799f70ef73dc2ea661d58c0f4987');
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
INSERT INTO "measurement" VALUES(1,2,1,'5ec7e1',1,2,1,'a processor',1.5,0.1,0.75,1,20,1,'2026-11-23T02:21:47.050475Z','07d2ad79d389edae37b45e3841ff9858');
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
INSERT INTO "proposal" VALUES(1,1,0,'baseline',NULL,'told',NULL,NULL,'2026-11-23T02:21:46.970182Z',1,0,'289dde403a7cd2c8591b82230b4190fc');
INSERT INTO "proposal" VALUES(2,1,1,'operator',1,'told',NULL,NULL,'2026-11-23T02:21:47.029801Z',1,0,'59a53a3ba8b04151ca203b7b915367cc');
INSERT INTO "proposal" VALUES(3,1,2,'operator',2,'asked','96a975d0b4661a8c:5874:574934:1','2026-11-23T02:21:47.065783Z','2026-11-23T02:21:47.065783Z',1,0,'b84b9b594ba92894d098d55f2a741b77');
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
INSERT INTO "study" VALUES(1,'old',1,'{}',3,'2026-11-23T02:21:46.947846Z','ad3ea83806c869f58a30d5f2d3d2e97b',5,'14fb799f70ef73dc2ea661d58c0f4987');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	definitions TEXT DEFAULT '{}' NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(5,'0.1.0','2026-11-23T02:21:46.917681Z','{"index baseline_by_evaluation":"34fa253bee50205cd23915da99a4149f","index measurement_by_evaluation":"46268b813b9b6fc229807c030dfccfc4","index operator_by_key":"3e240562881aff64f23cf6bb45cd5c40","index proposal_by_state":"78ff6c936bd67c162db0ed3188fbbc81","table artifact":"5bf8d3b41a29a80c7ebc72befebd57bf","table baseline":"ce38f51b20ef2276b8f08df8949277a1","table environment":"fd11928b37d63a7abcd4550a989cacda","table evaluation":"bdede18fa20a9d569ddb343082993b8c","table event":"e0625dfd28005b2f07e478869c274135","table measurement":"bb800eca7bd3c9d68ca6f60f43156e79","table operator":"8c94debdb34688988e196d48fb1fc5ba","table proposal":"89eb38fe79adb3908c1c0db7bb022b43","table quarantine":"410b6c676c440f58dd9a38d4a1b8c52f","table specification":"d96d20f9f5fec65b4cb9d26a53278e5c","table study":"a0466c33ff5bf898de1896be0f67492c","table syno_schema":"818379cb2b7a3a74fd05c7953b1c26cf","table verification":"5482b1db7829a7161ae1e80612fcc36e"}','ac8d3de81d041ee8c06d532948bda446');
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
INSERT INTO "verification" VALUES(1,1,'5ec7e1','[{"C_in":4,"H":8}]','pytorch',3,1,1.0e-07,1,'2026-11-23T02:21:47.049281Z','94e25efe9836361512421b20ff376ea5');
CREATE INDEX operator_by_key ON operator ("key");
CREATE INDEX proposal_by_state ON proposal (study_id, state);
CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id);
CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id);
COMMIT;
