-- Schema 12: fields of stored results were renamed. Results of the last day are replayed with the new names.

UPDATE result SET result = CAST(json_remove(json_set(text, '$.metadata.usage_by_model', json_extract(text, '$.metadata.spent')),
                                            '$.metadata.spent') AS BLOB)
FROM (SELECT number AS of, CAST(result AS TEXT) AS text FROM result)
WHERE number = of AND json_valid(text) AND json_type(text, '$.metadata.spent') IS NOT NULL;

UPDATE result SET result = CAST(json_remove(json_set(text, '$.metadata.model_choice_reason',
                                                     json_extract(text, '$.metadata.chosen_because')),
                                            '$.metadata.chosen_because') AS BLOB)
FROM (SELECT number AS of, CAST(result AS TEXT) AS text FROM result)
WHERE number = of AND json_valid(text) AND json_type(text, '$.metadata.chosen_because') IS NOT NULL;

UPDATE result SET result = CAST(json_remove(json_set(text, '$.structured.model_choice_reason',
                                                     json_extract(text, '$.structured.chosen_because')),
                                            '$.structured.chosen_because') AS BLOB)
FROM (SELECT number AS of, CAST(result AS TEXT) AS text FROM result)
WHERE number = of AND json_valid(text) AND json_type(text, '$.structured.chosen_because') IS NOT NULL;
