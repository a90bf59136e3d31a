-- Sessions with messages, in the schema of opencode 1.18: the one with the id ?1, or all except subagents.
SELECT id, directory,
    max(time_updated,
        (SELECT max(time_updated) FROM message WHERE session_id = session.id),
        coalesce((SELECT max(time_updated) FROM part WHERE session_id = session.id), 0)),
    (SELECT sum(octet_length(data)) FROM message WHERE session_id = session.id)
        + coalesce((SELECT sum(octet_length(data)) FROM part WHERE session_id = session.id), 0)
FROM session
WHERE CASE WHEN ?1 IS NULL THEN parent_id IS NULL ELSE id = ?1 END
    AND EXISTS (SELECT 1 FROM message WHERE session_id = session.id)
