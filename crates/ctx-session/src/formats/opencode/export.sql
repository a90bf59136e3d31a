-- The document that `opencode export` would write for a session, with only the fields that ctx reads.
-- Data that is not valid JSON is skipped, because it would break the document.
SELECT json_object(
    'info', json_object('id', id, 'directory', directory),
    'messages', json((
        SELECT json_group_array(json_object(
            'info', json_set(CASE WHEN json_valid(data) THEN data ELSE '{}' END, '$.id', id),
            'parts', json((
                SELECT json_group_array(json(data) ORDER BY id) FROM part
                WHERE message_id = message.id AND json_valid(data)
            ))
        ) ORDER BY time_created, id)
        FROM message WHERE session_id = session.id
    ))
)
FROM session WHERE id = ?1
