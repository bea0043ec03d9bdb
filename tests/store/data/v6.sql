-- A store as version 6 wrote it, killed during the second operator. Never changed.
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
INSERT INTO "baseline" VALUES(1,1,1,2.0,0.2,'2026-11-23T21:01:07.461331Z','2fe66ac7ebe35477d2e49c9ad24a95a4');
INSERT INTO "baseline" VALUES(2,2,1,2.0,0.2,'2026-11-23T21:01:07.707963Z','590a7f0ae583ea6949478833b527b209');
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
INSERT INTO "evaluation" VALUES(1,1,'44136fa355b3678a1146ad16f7e8649e','{}','holdout','',0,'ok','',0.9,20000,NULL,'{}',3.0,'{}',1,'2026-11-23T21:01:07.375848Z',0,'e74afb9d9972075d7d268d7ffe1dc128');
INSERT INTO "evaluation" VALUES(2,2,'4b73727c43cb49e1acd485a00238dbf0','{"epochs":3,"lr":0.1}','holdout','16px',5,'ok','',0.875,12345,678,'{"reduce":2,"unfold":1}',2.5,'{"losses":[2.0,1.0]}',1,'2026-11-23T21:01:07.706556Z',0,'d8991597a57d350d23378cf0ebc5b28a');
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
INSERT INTO "event" VALUES(1,1,'started','{}','2026-11-23T21:01:07.143817Z','{}','06c07257e1a089fd51258672e10b0ddb');
INSERT INTO "event" VALUES(1,2,'asked','{"ask":0,"proposal":1}','2026-11-23T21:01:07.264253Z','{}','66d0d9ebf3091379d5a3c6f1086b9218');
INSERT INTO "event" VALUES(1,3,'told','{"ask":0,"proposal":1,"status":"ok"}','2026-11-23T21:01:07.518800Z','{"baseline":{"1":"2fe66ac7ebe35477d2e49c9ad24a95a4"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"1":"e74afb9d9972075d7d268d7ffe1dc128"}}','765dbdf6304ef9c63fda2769893cc7de');
INSERT INTO "event" VALUES(1,4,'asked','{"ask":1,"proposal":2}','2026-11-23T21:01:07.604243Z','{"operator":{"1":"f6ded51087db374baede864346420a19"}}','905face39ccddec94293ece3d4072b00');
INSERT INTO "event" VALUES(1,5,'told','{"ask":1,"proposal":2,"status":"ok"}','2026-11-23T21:01:07.786470Z','{"baseline":{"2":"590a7f0ae583ea6949478833b527b209"},"environment":{"1":"8c8eece0256205967143a45164fde163"},"evaluation":{"2":"d8991597a57d350d23378cf0ebc5b28a"},"measurement":{"1":"198474dff7ffe73fdc42e7bc9741c87b"},"verification":{"1":"a0deb47525291ef44ded8a52788fb5ad"}}','ee4fd02597be1c68b6bb2ccb9dda9751');
INSERT INTO "event" VALUES(1,6,'asked','{"ask":2,"proposal":3}','2026-11-23T21:01:07.842908Z','{"operator":{"2":"00e7b7e7b2e2d3aff829272735a12348"}}','46c0bd5fd6992716944869f7cf141383');
INSERT INTO "event" VALUES(1,7,'failed','{"ask":2,"failure":"crash","proposal":3,"reason":"crash: SIGSEGV"}','2026-11-23T21:01:07.923807Z','{}','ba181e775fc1ff1620c4c1ca2206cca9');
INSERT INTO "event" VALUES(1,8,'leased','{"proposal":3}','2026-11-23T21:01:08.079201Z','{}','87552d0782d81da9f2fe80390c67610b');
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
INSERT INTO "measurement" VALUES(1,2,1,'5ec7e1',1,2,1,'a processor',1.5,0.1,0.75,1,20,1,'2026-11-23T21:01:07.708189Z','198474dff7ffe73fdc42e7bc9741c87b');
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
INSERT INTO "proposal" VALUES(1,1,0,'baseline',NULL,'told',NULL,NULL,'2026-11-23T21:01:07.263145Z',1,0,'aa802f51f3d972326e320ac6d8e2a6b8');
INSERT INTO "proposal" VALUES(2,1,1,'operator',1,'told',NULL,NULL,'2026-11-23T21:01:07.601547Z',1,0,'d91b01d2e82d1aa1a658b53818a2932b');
INSERT INTO "proposal" VALUES(3,1,2,'operator',2,'asked','96a975d0b4661a8c:494:7289778:1','2026-11-23T21:01:08.078505Z','2026-11-23T21:01:07.841923Z',1,0,'7570d55f2cb9819c4f3dd667772a677a');
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
INSERT INTO "quarantine" VALUES(1,2,1,'crash','crash: SIGSEGV','2026-11-23T21:01:07.922965Z','91d628328a6fc4b4250f8c6ae17579bd');
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
INSERT INTO "study" VALUES(1,'old',1,'{"baseline":true,"evaluations":3}',3,'2026-11-23T21:01:07.100998Z','8ca5e8a0722dc89dc6eaa9c5b13d7ed1',8,'87552d0782d81da9f2fe80390c67610b');
CREATE TABLE syno_schema (
	version INTEGER NOT NULL, 
	written_by TEXT NOT NULL, 
	applied TEXT NOT NULL, 
	definitions TEXT DEFAULT '{}' NOT NULL, 
	seal TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "syno_schema" VALUES(6,'0.1.0','2026-11-23T21:01:06.865749Z','{"index baseline_by_evaluation":"34fa253bee50205cd23915da99a4149f","index measurement_by_evaluation":"46268b813b9b6fc229807c030dfccfc4","index operator_by_key":"3e240562881aff64f23cf6bb45cd5c40","index proposal_by_state":"78ff6c936bd67c162db0ed3188fbbc81","table baseline":"ce38f51b20ef2276b8f08df8949277a1","table environment":"fd11928b37d63a7abcd4550a989cacda","table evaluation":"bdede18fa20a9d569ddb343082993b8c","table event":"e0625dfd28005b2f07e478869c274135","table measurement":"bb800eca7bd3c9d68ca6f60f43156e79","table operator":"8c94debdb34688988e196d48fb1fc5ba","table proposal":"89eb38fe79adb3908c1c0db7bb022b43","table quarantine":"410b6c676c440f58dd9a38d4a1b8c52f","table specification":"d96d20f9f5fec65b4cb9d26a53278e5c","table study":"a0466c33ff5bf898de1896be0f67492c","table syno_schema":"818379cb2b7a3a74fd05c7953b1c26cf","table verification":"5482b1db7829a7161ae1e80612fcc36e"}','660273b32939ea053a51a67c15c1ecb2');
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
INSERT INTO "verification" VALUES(1,1,'5ec7e1','[{"C_in":4,"H":8}]','pytorch',3,1,1.0e-07,1,'2026-11-23T21:01:07.707082Z','a0deb47525291ef44ded8a52788fb5ad');
CREATE INDEX operator_by_key ON operator ("key");
CREATE INDEX proposal_by_state ON proposal (study_id, state);
CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id);
CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id);
COMMIT;
