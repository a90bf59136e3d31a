-- The last answer of a session that reports usage, except summaries: their requests are not the context.
SELECT data FROM message
WHERE session_id = ?1 AND CASE WHEN json_valid(data) THEN
        json_extract(data, '$.summary') IS NOT 1
        AND coalesce(json_extract(data, '$.tokens.input'), 0)
            + coalesce(json_extract(data, '$.tokens.cache.read'), 0)
            + coalesce(json_extract(data, '$.tokens.cache.write'), 0) > 0
    END
ORDER BY time_created DESC, id DESC LIMIT 1
