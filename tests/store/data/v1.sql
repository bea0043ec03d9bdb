-- A store as version 1 wrote it, with a study that was interrupted. Old stores stay readable: this
-- file is never changed; a later version adds one of its own.
PRAGMA foreign_keys = ON;
CREATE TABLE syno_schema (
    version INTEGER NOT NULL PRIMARY KEY, written_by TEXT NOT NULL, applied TEXT NOT NULL);
CREATE TABLE specification (
    id INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL UNIQUE, content TEXT NOT NULL);
CREATE TABLE operator (
    id INTEGER NOT NULL PRIMARY KEY,
    specification_id INTEGER NOT NULL REFERENCES specification (id),
    key TEXT NOT NULL, text TEXT NOT NULL, digest TEXT NOT NULL,
    UNIQUE (specification_id, digest));
CREATE TABLE environment (
    id INTEGER NOT NULL PRIMARY KEY, digest TEXT NOT NULL UNIQUE, device TEXT NOT NULL,
    platform TEXT NOT NULL, libraries TEXT NOT NULL, commit_hash TEXT NOT NULL,
    threads INTEGER NOT NULL, rules TEXT NOT NULL);
CREATE TABLE study (
    id INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE,
    specification_id INTEGER NOT NULL REFERENCES specification (id),
    settings TEXT NOT NULL, seed BIGINT NOT NULL, created TEXT NOT NULL);
CREATE TABLE event (
    study_id INTEGER NOT NULL REFERENCES study (id), sequence INTEGER NOT NULL,
    kind TEXT NOT NULL, data TEXT NOT NULL, created TEXT NOT NULL,
    PRIMARY KEY (study_id, sequence));
CREATE TABLE proposal (
    id INTEGER NOT NULL PRIMARY KEY,
    study_id INTEGER NOT NULL REFERENCES study (id), ask INTEGER NOT NULL, kind TEXT NOT NULL,
    operator_id INTEGER REFERENCES operator (id), state TEXT NOT NULL, lease TEXT, heartbeat TEXT,
    created TEXT NOT NULL,
    UNIQUE (study_id, ask),
    CHECK ((kind = 'baseline') = (operator_id IS NULL)));
CREATE TABLE evaluation (
    id INTEGER NOT NULL PRIMARY KEY,
    proposal_id INTEGER NOT NULL REFERENCES proposal (id),
    recipe_digest TEXT NOT NULL, recipe TEXT NOT NULL, split TEXT NOT NULL, rung TEXT NOT NULL,
    seed BIGINT NOT NULL, status TEXT NOT NULL, reason TEXT NOT NULL, accuracy FLOAT, macs BIGINT,
    params BIGINT, primitives TEXT NOT NULL, seconds FLOAT NOT NULL, details TEXT NOT NULL,
    environment_id INTEGER NOT NULL REFERENCES environment (id), finished TEXT NOT NULL,
    UNIQUE (proposal_id, recipe_digest, split, rung, seed),
    CHECK (status IN ('ok', 'error', 'timeout', 'rejected')));
CREATE TABLE verification (
    id INTEGER NOT NULL PRIMARY KEY,
    operator_id INTEGER NOT NULL REFERENCES operator (id),
    source_hash TEXT NOT NULL, bindings TEXT NOT NULL, emitter TEXT NOT NULL, seed BIGINT NOT NULL,
    passed BOOLEAN NOT NULL, max_error FLOAT,
    environment_id INTEGER NOT NULL REFERENCES environment (id), created TEXT NOT NULL,
    UNIQUE (id, source_hash, passed));
CREATE TABLE baseline (
    id INTEGER NOT NULL PRIMARY KEY,
    evaluation_id INTEGER NOT NULL REFERENCES evaluation (id),
    environment_id INTEGER NOT NULL REFERENCES environment (id),
    median_ms FLOAT NOT NULL, spread_ms FLOAT NOT NULL, created TEXT NOT NULL);
CREATE TABLE measurement (
    id INTEGER NOT NULL PRIMARY KEY,
    evaluation_id INTEGER NOT NULL REFERENCES evaluation (id),
    verification_id INTEGER NOT NULL, source_hash TEXT NOT NULL, passed BOOLEAN NOT NULL,
    baseline_id INTEGER NOT NULL REFERENCES baseline (id),
    environment_id INTEGER NOT NULL REFERENCES environment (id),
    device TEXT NOT NULL, median_ms FLOAT NOT NULL, spread_ms FLOAT NOT NULL, ratio FLOAT NOT NULL,
    threads INTEGER NOT NULL, repeats INTEGER NOT NULL, batch INTEGER NOT NULL,
    created TEXT NOT NULL,
    FOREIGN KEY (verification_id, source_hash, passed)
        REFERENCES verification (id, source_hash, passed),
    CHECK (passed));
CREATE TABLE artifact (
    hash TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, content BLOB NOT NULL,
    created TEXT NOT NULL);
INSERT INTO syno_schema VALUES (1, '0.1.0', '2026-01-05T08:00:00.000000Z');
INSERT INTO specification VALUES (1, 'aa', '{"input":"[H]"}');
INSERT INTO operator VALUES (1, 1, 'k1', 'operator one', 'd1'), (2, 1, 'k2', 'operator two', 'd2');
INSERT INTO environment VALUES (1, 'e1', 'a processor', 'Linux', '{"torch":"2.13.0"}', '', 1, '1');
INSERT INTO study VALUES (1, 'old', 1, '{"seed":7}', 7, '2026-01-05T08:00:01.000000Z');
INSERT INTO event VALUES
    (1, 1, 'asked', '{"ask":0,"proposal":1}', '2026-01-05T08:00:02.000000Z'),
    (1, 2, 'told', '{"ask":0,"proposal":1,"status":"ok"}', '2026-01-05T08:00:03.000000Z'),
    (1, 3, 'asked', '{"ask":1,"proposal":2}', '2026-01-05T08:00:04.000000Z'),
    (1, 4, 'told', '{"ask":1,"proposal":2,"status":"ok"}', '2026-01-05T08:00:05.000000Z'),
    (1, 5, 'asked', '{"ask":2,"proposal":3}', '2026-01-05T08:00:06.000000Z');
INSERT INTO proposal VALUES
    (1, 1, 0, 'baseline', NULL, 'told', NULL, NULL, '2026-01-05T08:00:02.000000Z'),
    (2, 1, 1, 'operator', 1, 'told', NULL, NULL, '2026-01-05T08:00:04.000000Z'),
    (3, 1, 2, 'operator', 2, 'asked', 'gone:1:1:1', '2026-01-05T08:00:06.000000Z',
     '2026-01-05T08:00:06.000000Z');
INSERT INTO evaluation VALUES
    (1, 1, 'r', '{}', 'holdout', '16px', 7, 'ok', '', 0.9, 100, 10, '{}', 1.0, '{}', 1,
     '2026-01-05T08:00:03.000000Z'),
    (2, 2, 'r', '{}', 'holdout', '16px', 7, 'ok', '', 0.8, 50, 5, '{"reduce":1}', 1.0, '{}', 1,
     '2026-01-05T08:00:05.000000Z');
INSERT INTO verification VALUES
    (1, 1, 's1', '[{"H":4}]', 'pytorch', 7, 1, 1e-7, 1, '2026-01-05T08:00:05.000000Z');
INSERT INTO baseline VALUES
    (1, 1, 1, 2.0, 0.1, '2026-01-05T08:00:03.000000Z'),
    (2, 2, 1, 2.2, 0.1, '2026-01-05T08:00:05.000000Z');
INSERT INTO measurement VALUES
    (1, 2, 1, 's1', 1, 2, 1, 'a processor', 1.1, 0.1, 0.5, 1, 20, 1, '2026-01-05T08:00:05.000000Z');
