/** Functions of SQLite that statements use and PostgreSQL lacks, in the schema of the store. */
export const functions: ReadonlyArray<string> = [
  `CREATE FUNCTION min(BIGINT, BIGINT) RETURNS BIGINT IMMUTABLE LANGUAGE sql
   AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE least($1, $2) END'`,
  `CREATE FUNCTION max(BIGINT, BIGINT) RETURNS BIGINT IMMUTABLE LANGUAGE sql
   AS 'SELECT CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE greatest($1, $2) END'`,
  `CREATE FUNCTION instr(TEXT, TEXT) RETURNS INTEGER IMMUTABLE LANGUAGE sql AS 'SELECT strpos($1, $2)'`,
  `CREATE FUNCTION hex(BYTEA) RETURNS TEXT IMMUTABLE LANGUAGE sql AS $$SELECT upper(encode($1, 'hex'))$$`,
  `CREATE FUNCTION randomblob(INTEGER) RETURNS BYTEA LANGUAGE sql
   AS $$SELECT substr(sha256(uuid_send(gen_random_uuid())), 1, $1)$$`,
  // The one form that the schema has: two digits of length before the text.
  `CREATE FUNCTION printf(TEXT, INTEGER, TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql
   AS $$SELECT lpad($2::text, 2, '0') || $3$$`,
  // Fails where SQLite says 0: a CHECK of either refuses the row.
  `CREATE FUNCTION json_valid(TEXT) RETURNS BOOLEAN IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1::json IS NOT NULL'`,
  `CREATE FUNCTION json_each(TEXT) RETURNS TABLE (value TEXT) IMMUTABLE LANGUAGE sql
   AS 'SELECT json_array_elements_text($1::json)'`,
  `CREATE FUNCTION group_concat_of(TEXT, TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql
   AS $$SELECT CASE WHEN $1 IS NULL THEN $2 WHEN $2 IS NULL THEN $1 ELSE $1 || ',' || $2 END$$`,
  "CREATE AGGREGATE group_concat(TEXT) (SFUNC = group_concat_of, STYPE = TEXT)",
  `CREATE FUNCTION json_group_of(JSONB, anyelement) RETURNS JSONB IMMUTABLE LANGUAGE sql
   AS 'SELECT $1 || jsonb_build_array($2)'`,
  "CREATE FUNCTION json_text(JSONB) RETURNS TEXT IMMUTABLE LANGUAGE sql AS 'SELECT $1::text'",
  `CREATE AGGREGATE json_group_array(anyelement)
   (SFUNC = json_group_of, STYPE = JSONB, INITCOND = '[]', FINALFUNC = json_text)`,
  // True and false are 1 and 0, as SQLite has them.
  `CREATE FUNCTION json_part(JSON) RETURNS TEXT IMMUTABLE LANGUAGE sql AS $$
     SELECT CASE json_typeof($1) WHEN 'boolean' THEN CASE WHEN $1::text = 'true' THEN '1' ELSE '0' END ELSE $1 #>> '{}' END$$`,
  "CREATE FUNCTION json_field(TEXT, TEXT) RETURNS TEXT IMMUTABLE LANGUAGE sql AS 'SELECT json_part($1::json -> $2)'",
  "CREATE FUNCTION json_field(TEXT, INTEGER) RETURNS TEXT IMMUTABLE LANGUAGE sql AS 'SELECT json_part($1::json -> $2)'",
  "CREATE OPERATOR ->> (LEFTARG = TEXT, RIGHTARG = TEXT, FUNCTION = json_field)",
  "CREATE OPERATOR ->> (LEFTARG = TEXT, RIGHTARG = INTEGER, FUNCTION = json_field)",
  `CREATE FUNCTION pragma_table_info(TEXT) RETURNS TABLE (name TEXT, type TEXT) STABLE LANGUAGE sql
   AS $$SELECT column_name, CASE data_type WHEN 'bytea' THEN 'BLOB' ELSE data_type END FROM information_schema.columns
     WHERE table_schema = current_schema AND table_name = $1$$`
]
