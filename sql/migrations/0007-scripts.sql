-- compatible: adds functions; older workers go on and use none of them.

-- Scripts. The library sends a program, not the text: `code` is instructions one after another, each a number and its
-- operands; registers hold what the script works with, its constants and parameters first. What follows runs programs.
--
-- A value is a kind and a text: 0 null, 1 boolean, 2 integer, 3 float, 4 text, 5 array, 6 range of integers (an array whose
-- items are not written out). The text is what would be stored. An array is a stretch of the heap: where it starts stands
-- in `revs`, how many items it has in `exps`; a range has its first and last number there. For other kinds these hold
-- revision and expiry (epoch milliseconds) of what was read.

-- Ends a script. `reason` is one of those of ScriptError, or of ScriptAbortedError with `abort:` before it.
create function :schema.script_fail(reason text, detail text default null) returns void
language plpgsql as $function$
begin
  raise exception using errcode = 'HF100', message = reason, detail = coalesce(detail, '');
end
$function$;

-- The number that a text is: integer if it looks like one, else float. Null if it is none.
create function :schema.script_number(val text, out kind integer, out num text)
language plpgsql immutable set search_path = pg_catalog, pg_temp set extra_float_digits = 1 as $function$
declare
  trimmed text := btrim(val, E' \t\n\r\f\v');
begin
  if trimmed ~ '^[+-]?[0-9]+$' then
    kind := 2;
    num := trimmed::bigint;
  elsif trimmed ~* '^[+-]?([0-9][0-9,]*[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$' or trimmed ~* '^([+-]?infinity|nan)$' then
    kind := 3;
    num := replace(replace(trimmed, ',', '')::float8::text, 'e', 'E');
  end if;
end
$function$;

-- Float arithmetic as IEEE 754 has it, where PostgreSQL has errors: 1 + 2 - 3 * 4 / 5 power.
create function :schema.script_float(op integer, a float8, b float8) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp set extra_float_digits = 1 as $function$
declare
  negative boolean := (a < 0) <> (b < 0);
  answer float8;
begin
  if a = 'NaN' or b = 'NaN' then return 'NaN'; end if;
  if op = 4 and b = 0 then
    if a = 0 then return 'NaN'; end if;
    return case when (a < 0) <> (b::text = '-0') then '-Infinity' else 'Infinity' end;
  end if;
  answer := case op when 1 then a + b when 2 then a - b when 3 then a * b when 4 then a / b else power(a, b) end;
  return replace(answer::text, 'e', 'E');
exception
  when numeric_value_out_of_range then
    if op = 5 then
      if (b > 0) <> (abs(a) > 1) then return '0'; end if;
      return case when a < 0 and b - 2 * trunc(b / 2) <> 0 then '-Infinity' else 'Infinity' end;
    end if;
    if op in (3, 4) and (ln(abs(a)) + case op when 3 then ln(abs(b)) else -ln(abs(b)) end < 0) then return '0'; end if;
    return case when case when op in (1, 2) then a < 0 else negative end then '-Infinity' else 'Infinity' end;
  when invalid_argument_for_power_function then
    return case when a = 0 then 'Infinity' else 'NaN' end;
end
$function$;

-- a op b for numbers, and texts that are numbers beside one: 1 + 2 - 3 * 4 /.
create function :schema.script_arithmetic(op integer, kind_a integer, a text, kind_b integer, b text,
  out kind integer, out val text)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if kind_a = 4 and kind_b in (2, 3) then select n.kind, num into kind_a, a from :schema.script_number(a) n; end if;
  if kind_b = 4 and kind_a in (2, 3) then select n.kind, num into kind_b, b from :schema.script_number(b) n; end if;
  if (kind_a in (2, 3) and kind_b in (2, 3)) is not true then
    perform :schema.script_fail('operand-type', 'arithmetic');
  end if;
  if kind_a = 2 and kind_b = 2 then
    kind := 2;
    val := case op when 1 then a::bigint + b::bigint when 2 then a::bigint - b::bigint when 3 then a::bigint * b::bigint
      else a::bigint / b::bigint end;
  else
    kind := 3;
    val := :schema.script_float(op, a::float8, b::float8);
  end if;
end
$function$;

-- -1, 0 or 1 as an integer is below, equal to or above a float, exactly; null beside NaN.
create function :schema.script_compare_mixed(a bigint, b float8) returns integer
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if b = 'NaN' then return null; end if;
  if b >= 9223372036854775808 then return -1; end if;
  if b < -9223372036854775808 then return 1; end if;
  if a <> trunc(b)::bigint then return sign(a - trunc(b)::bigint::numeric); end if;
  return sign(trunc(b) - b);
end
$function$;

-- a op b: 1 < 2 <= 3 > 4 >= 5 == 6 !=.
create function :schema.script_compare(op integer, kind_a integer, a text, kind_b integer, b text) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
  difference integer;
begin
  if op >= 5 then
    if kind_a = 0 or kind_b = 0 then return (kind_a = kind_b) = (op = 5); end if;
    if kind_a = kind_b and kind_a in (1, 4) then return (a = b collate "C") = (op = 5); end if;
  end if;
  if kind_a = 4 and kind_b in (2, 3) then select n.kind, num into kind_a, a from :schema.script_number(a) n; end if;
  if kind_b = 4 and kind_a in (2, 3) then select n.kind, num into kind_b, b from :schema.script_number(b) n; end if;
  if (kind_a in (2, 3) and kind_b in (2, 3)) is not true then
    perform :schema.script_fail('operand-type', case when op >= 5 then 'equality' else 'order' end);
  end if;
  if kind_a = 2 and kind_b = 2 then
    difference := case when a::bigint < b::bigint then -1 when a::bigint = b::bigint then 0 else 1 end;
  elsif kind_a = 2 then
    difference := :schema.script_compare_mixed(a::bigint, b::float8);
  elsif kind_b = 2 then
    difference := -:schema.script_compare_mixed(b::bigint, a::float8);
  elsif a::float8 <> 'NaN' and b::float8 <> 'NaN' then
    difference := case when a::float8 < b::float8 then -1 when a::float8 = b::float8 then 0 else 1 end;
  end if;
  return case op
    when 1 then difference = -1
    when 2 then difference <> 1
    when 3 then difference = 1
    when 4 then difference <> -1
    when 5 then difference = 0
    else difference <> 0
  end is not false and (op in (2, 4, 6) or difference is not null);
end
$function$;

-- The whole number that an operand is: an integer, or a text that is one.
create function :schema.script_integer(kind integer, val text, reason text) returns bigint
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if kind = 2 then return val::bigint; end if;
  if kind = 4 and btrim(val, E' \t\n\r\f\v') ~ '^[+-]?[0-9]+$' then return btrim(val, E' \t\n\r\f\v')::bigint; end if;
  perform :schema.script_fail(reason);
end
$function$;

-- How long a key is to live, checked.
create function :schema.script_ttl(kind integer, val text) returns bigint
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
  ttl bigint := :schema.script_integer(kind, val, 'bad-expiry');
begin
  if ttl not between 0 and 2147483647 then perform :schema.script_fail('invalid-input', 'ttl'); end if;
  return ttl;
end
$function$;

-- An instant to read as of, checked.
create function :schema.script_instant(kind integer, val text) returns bigint
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
  instant bigint := :schema.script_integer(kind, val, 'number-format');
begin
  if instant not between 1 and 253402300799999 then perform :schema.script_fail('invalid-input', 'instant'); end if;
  return instant;
end
$function$;

-- JSON text in ASCII, with what means something in HTML escaped too.
create function :schema.script_json_text(val text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
  quoted text := to_json(val)::text;
begin
  quoted := substr(quoted, 2, length(quoted) - 2);
  if quoted ~ E'[^ -~]|[\\x7f"''&+<>`]' then
    select string_agg(case
        when c in ('"', '''', '&', '+', '<', '>', '`') or ascii(c) = 127 or ascii(c) between 128 and 65535
          then E'\\u' || lpad(upper(to_hex(ascii(c))), 4, '0')
        when ascii(c) > 65535
          then E'\\u' || upper(to_hex(55296 + ((ascii(c) - 65536) >> 10))) || E'\\u' || upper(to_hex(56320 + ((ascii(c) - 65536) & 1023)))
        else c end, '' order by n)
      into quoted
      from regexp_split_to_table(replace(quoted, E'\\"', '"'), '') with ordinality as x (c, n);
  end if;
  return '"' || coalesce(quoted, '') || '"';
end
$function$;

create function :schema.script_json(kind integer, val text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if kind = 0 then return 'null'; end if;
  if kind in (1, 2) then return val; end if;
  if kind = 4 then return :schema.script_json_text(val); end if;
  -- JSON has no infinity, and no number that is not one.
  if kind <> 3 or val in ('NaN', 'Infinity', '-Infinity') then perform :schema.script_fail('argument-type', 'to_json'); end if;
  return val;
end
$function$;

-- Calls a function of the language by its number, that of `src/scripts/functions.ts`; those on arrays are not here.
create function :schema.script_call(fn integer, kind_a integer, a text, kind_b integer, b text, out kind integer, out val text)
language plpgsql volatile set search_path = pg_catalog, pg_temp set extra_float_digits = 1 as $function$
declare
  x float8;
begin
  if fn <= 6 then                                                       -- numbers
    if kind_a not in (2, 3) or kind_b not in (2, 3) then perform :schema.script_fail('argument-type', fn::text); end if;
    kind := 3;
    if fn = 0 then
      kind := kind_a;
      val := case when kind_a = 2 then abs(a::bigint)::text else replace(abs(a::float8)::text, 'e', 'E') end;
    elsif fn in (1, 2) then
      if kind_a = 2 and kind_b = 2 then
        kind := 2;
        val := case fn when 1 then least(a::bigint, b::bigint) else greatest(a::bigint, b::bigint) end;
      elsif a = 'NaN' or b = 'NaN' then
        val := 'NaN';
      else
        val := replace((case fn when 1 then least(a::float8, b::float8) else greatest(a::float8, b::float8) end)::text, 'e', 'E');
      end if;
    elsif fn = 3 then
      val := :schema.script_float(5, a::float8, b::float8);
    elsif fn = 4 then
      val := replace(ceil(a::float8)::text, 'e', 'E');
    elsif fn = 5 then
      val := replace(floor(a::float8)::text, 'e', 'E');
    else
      if kind_b <> 2 then perform :schema.script_fail('argument-type', fn::text); end if;
      if b::bigint not between 0 and 15 then perform :schema.script_fail('number-range', 'round'); end if;
      x := a;
      -- Beyond that there are no digits behind the point to round.
      if abs(x) < 1e16 then x := round(x * 10.0::float8 ^ b::integer) / 10.0::float8 ^ b::integer; end if;
      val := replace(x::text, 'e', 'E');
    end if;
  elsif fn = 7 then                                                     -- to_int
    kind := 2;
    if kind_a = 2 then
      val := a;
    elsif kind_a = 1 then
      val := case a when 'true' then 1 else 0 end;
    elsif kind_a = 3 and a <> 'NaN' then
      x := trunc(a::float8);
      val := case when x >= 9223372036854775808 then 9223372036854775807
        when x < -9223372036854775808 then -9223372036854775808 else x::bigint end;
    elsif kind_a = 4 and a = '' then
      val := 0;
    else
      val := :schema.script_integer(kind_a, a, 'cast');
    end if;
  elsif fn = 8 then                                                     -- to_float
    kind := 3;
    if kind_a = 1 then
      val := case a when 'true' then 1 else 0 end;
    elsif kind_a in (2, 3) then
      val := replace(a::float8::text, 'e', 'E');
    elsif kind_a = 4 then
      select num into val from :schema.script_number(a);
      if a = '' then val := 0; end if;
      if val is not null then val := replace(val::float8::text, 'e', 'E'); end if;
    end if;
    if val is null then perform :schema.script_fail('cast', fn::text); end if;
  elsif fn = 9 then                                                     -- to_str
    if kind_a >= 5 then perform :schema.script_fail('cast', fn::text); end if;
    kind := 4;
    val := a;
  elsif fn = 10 then                                                    -- to_bool
    kind := 1;
    val := case kind_a when 1 then a when 2 then (a::bigint <> 0)::text when 3 then (a::float8 <> 0)::text
      when 4 then (lower(a collate "C") = 'true')::text end;
    if val is null then perform :schema.script_fail('cast', fn::text); end if;
  elsif fn <= 16 then                                                   -- is_int, is_float, is_str, is_bool, is_null, is_array
    kind := 1;
    val := case fn when 11 then kind_a = 2 when 12 then kind_a = 3 when 13 then kind_a = 4 when 14 then kind_a = 1
      when 15 then kind_a = 0 else kind_a >= 5 end;
  elsif fn = 17 then                                                    -- to_json
    kind := 4;
    val := :schema.script_json(kind_a, a);
  elsif fn <= 21 then                                                   -- concat, upper, lower, len
    if kind_a <> 4 or kind_b <> 4 then perform :schema.script_fail('argument-type', fn::text); end if;
    kind := 4;
    if fn = 18 then
      if octet_length(a) + octet_length(b) > 16777216 then perform :schema.script_fail('too-large', 'text'); end if;
      val := a || b;
    elsif fn in (19, 20) then
      -- ASCII here; the other letters by the table that the library sends: letters, then what each becomes.
      val := case fn when 19 then upper(a collate "C") else lower(a collate "C") end;
      if octet_length(a) > length(a) then
        val := translate(val, left(b, length(b) / 2), right(b, length(b) / 2));
      end if;
    else
      -- UTF-16 units: one more for each character that has four bytes in UTF-8.
      kind := 2;
      val := length(a) + case when octet_length(a) = length(a) then 0
        else length(regexp_replace(a, E'[\\u0001-\\uffff]', '', 'g')) end;
    end if;
  else                                                                  -- current_time
    kind := 2;
    val := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  end if;
end
$function$;

-- Runs a program. Answers are columns; only what another try may change is raised: serialization failures and deadlocks.
--
-- `kinds` and `vals` are what registers start with; -1 is nothing yet. Before it starts it locks what `lock_names` says, in
-- that order (`lock_modes`: 1 ephemeral, 2 a listing; `lock_writes`: it is written), and waits for all of it together at
-- most `lock_wait_ms`.
-- A subtransaction takes back what a script did that fails. `at` is where in the program it was, from which the library
-- knows the line.
create function :schema.script_run(tenant text, code integer[], kinds integer[], vals text[], keys text[],
  lock_names text[], lock_modes integer[], lock_writes boolean[], lock_wait_ms integer, timeout_ms integer, in_transaction boolean,
  out reason text, out detail text, out at integer, out answer integer, out key text, out value text, out revision bigint,
  out expires_at bigint, out modified_at bigint, out items text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
#variable_conflict use_variable
declare
  -- Registers. 1 is what a `return` gave.
  revs bigint[] := '{}';
  exps bigint[] := '{}';
  -- Items of arrays.
  heap_kinds integer[] := '{}';
  heap_vals text[] := '{}';
  heap_revs bigint[] := '{}';
  heap_exps bigint[] := '{}';
  heap_keys text[] := '{}';
  heap_times bigint[] := '{}';
  heap_size integer := 0;
  pc integer := 1;
  op integer;
  a integer;
  b integer;
  c integer;
  d integer;
  kind_a integer;
  kind_b integer;
  flags integer;
  number bigint;
  made text;
  count integer;
  steps integer := 0;
  truth boolean;
  -- The newest answer: 1 set 2 notset 3 get 4 exists 5 doesnotexist 6 deleted 7 extended; and that of the newest write.
  written integer;
  from_register boolean := false;
  bytes bytea;
  found_revision bigint;
  expires timestamptz;
  modified timestamptz;
  done boolean;
  found_key integer;
  listing text;
  started timestamptz := clock_timestamp();
  deadline timestamptz := started + timeout_ms * interval '1 millisecond';
  -- 0 would be no limit.
  wait integer := greatest(1, least(lock_wait_ms, timeout_ms));
  patience timestamptz := started + wait * interval '1 millisecond';
  persistent integer := 0;                 -- locks: the persistent ones come first
  old_wait text := current_setting('lock_timeout');
  failure text;
begin
  answer := 0;
  begin
    perform set_config('lock_timeout', wait::text, true);
    kinds := array_replace(kinds, -1, null);

    if lock_names is not null then
      a := 1;
      while a <= cardinality(lock_names) loop
        b := a;
        if lock_modes[a] & 2 > 0 then
          perform :schema.key_guard(tenant, lock_modes[a] & 1 > 0, lock_names[a]);
        else
          while lock_modes[b + 1] = lock_modes[a] loop b := b + 1; end loop;
          perform :schema.key_lock(tenant, lock_modes[a] & 1 > 0, lock_names[a : b], lock_writes[a : b], patience);
        end if;
        if lock_modes[a] & 1 = 0 then persistent := b; end if;
        a := b + 1;
        if a <= cardinality(lock_names) then
          perform set_config('lock_timeout',
            greatest(1, ceil(date_part('epoch', patience - clock_timestamp()) * 1000))::text, true);
        end if;
      end loop;
    end if;

    loop
      op := code[pc];
      -- What no register holds any more makes room before new items come.
      if heap_size > 50000 and op in (19, 21) then
        declare
          old_kinds integer[] := heap_kinds;
          old_vals text[] := heap_vals;
          old_revs bigint[] := heap_revs;
          old_exps bigint[] := heap_exps;
          old_keys text[] := heap_keys;
          old_times bigint[] := heap_times;
          low integer;
          high integer;
        begin
          heap_kinds := '{}';
          heap_vals := '{}';
          heap_revs := '{}';
          heap_exps := '{}';
          heap_keys := '{}';
          heap_times := '{}';
          heap_size := 0;
          for i in 1..cardinality(kinds) loop
            if kinds[i] = 5 and i <> code[pc + 1] then
              low := revs[i];
              high := revs[i] + exps[i] - 1;
              heap_kinds := heap_kinds || old_kinds[low : high];
              heap_vals := heap_vals || old_vals[low : high];
              heap_revs := heap_revs || old_revs[low : high];
              heap_exps := heap_exps || old_exps[low : high];
              heap_keys := heap_keys || old_keys[low : high];
              heap_times := heap_times || old_times[low : high];
              revs[i] := heap_size + 1;
              heap_size := heap_size + exps[i];
            end if;
          end loop;
        end;
      end if;
      if op < 10 then
        if op < 5 then
          if op < 3 then
            if op = 1 then                                              -- GET d key flags (1 ephemeral, 2 inside an expression)
              if clock_timestamp() > deadline then perform :schema.script_fail('abort:timeout'); end if;
              a := code[pc + 1];
              flags := code[pc + 3];
              made := keys[code[pc + 2]];
              -- As `key_get`, whose call would cost as much again.
              if flags & 1 = 0 then
                select k.value, k.revision, k.expires_at, k.modified_at into bytes, found_revision, expires, modified
                from :schema.key_value k
                where k.tenant = script_run.tenant and k.key = made and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
              else
                select k.value, k.revision, k.expires_at, k.modified_at into bytes, found_revision, expires, modified
                from :schema.ephemeral_key_value k
                where k.tenant = script_run.tenant and k.key = made and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
              end if;
              done := found;
              if not done then found_revision := -1; end if;
              if a > 0 then
                if done then
                  kinds[a] := 4;
                  vals[a] := convert_from(bytes, 'UTF8');
                  revs[a] := found_revision;
                  exps[a] := floor(extract(epoch from expires) * 1000);
                else
                  kinds[a] := 0;
                  vals[a] := '';
                  revs[a] := null;
                  exps[a] := null;
                end if;
              end if;
              if flags & 2 = 0 then
                answer := case when done then 3 else 5 end;
                from_register := false;
                found_key := code[pc + 2];
              end if;
              pc := pc + 4;
            else                                                        -- SET d key flags value ttl cmp cmprev
              if clock_timestamp() > deadline then perform :schema.script_fail('abort:timeout'); end if;
              a := code[pc + 4];
              flags := code[pc + 3];
              if (kinds[a] < 5) is not true then
                perform :schema.script_fail(case when kinds[a] is null then 'undefined' else 'array-not-storable' end, a::text);
              end if;
              if flags < 2 then
                select s.done, s.revision, s.expires_at, s.modified_at into done, found_revision, expires, modified
                  from :schema.key_set(tenant, flags & 1 > 0, keys[code[pc + 2]], convert_to(vals[a], 'UTF8'),
                    null, false, false, null, null, false) s;
              else                                                      -- 1 ephemeral 2 nx 4 xx 8 norev 16 ttl 32 cmp 64 cmprev
                for i in 5..7 loop
                  b := code[pc + i];
                  if b > 0 and (kinds[b] < 5) is not true then
                    perform :schema.script_fail(
                      case when kinds[b] is null then 'undefined' when i = 6 then 'array-not-storable' when i = 5 then 'bad-expiry'
                        else 'number-format' end, b::text);
                  end if;
                end loop;
                select s.done, s.revision, s.expires_at, s.modified_at into done, found_revision, expires, modified
                  from :schema.key_set(tenant, flags & 1 > 0, keys[code[pc + 2]], convert_to(vals[a], 'UTF8'),
                    case when flags & 16 > 0 then :schema.script_ttl(kinds[code[pc + 5]], vals[code[pc + 5]]) end,
                    flags & 2 > 0, flags & 4 > 0,
                    case when flags & 32 > 0 then convert_to(vals[code[pc + 6]], 'UTF8') end,
                    case when flags & 64 > 0 then :schema.script_integer(kinds[code[pc + 7]], vals[code[pc + 7]], 'number-format') end,
                    flags & 8 > 0) s;
              end if;
              answer := case when done then 1 else 2 end;
              written := answer;
              from_register := false;
              bytes := null;
              found_key := code[pc + 2];
              a := code[pc + 1];
              if a > 0 then
                kinds[a] := 1;
                vals[a] := done;
              end if;
              pc := pc + 8;
            end if;
          else
            if op = 3 then                                              -- IFNOT r target
              a := code[pc + 1];
              if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
              if kinds[a] = 1 and vals[a] = 'true' then
                pc := pc + 3;
              else
                pc := code[pc + 2];
              end if;
            else                                                        -- 4 COMPARE d op a b
              a := code[pc + 3];
              b := code[pc + 4];
              c := code[pc + 2];
              kind_a := kinds[a];
              kind_b := kinds[b];
              if kind_a = 2 and kind_b = 2 then
                number := vals[a]::bigint;
                truth := case c when 1 then number < vals[b]::bigint when 2 then number <= vals[b]::bigint
                  when 3 then number > vals[b]::bigint when 4 then number >= vals[b]::bigint
                  when 5 then number = vals[b]::bigint else number <> vals[b]::bigint end;
              elsif c >= 5 and kind_a = 4 and kind_b = 4 then
                truth := (vals[a] = vals[b] collate "C") = (c = 5);
              elsif kind_a is null or kind_b is null then
                perform :schema.script_fail('undefined', case when kind_a is null then a else b end::text);
              elsif c >= 5 and (kind_a = 0 or kind_b = 0) then
                truth := (kind_a = kind_b) = (c = 5);
              else
                truth := :schema.script_compare(c, kind_a, vals[a], kind_b, vals[b]);
              end if;
              d := code[pc + 1];
              kinds[d] := 1;
              vals[d] := truth;
              pc := pc + 5;
            end if;
          end if;
        elsif op < 7 then
          if op = 5 then                                                -- ARITHMETIC d op a b
            a := code[pc + 3];
            b := code[pc + 4];
            c := code[pc + 2];
            d := code[pc + 1];
            kind_a := kinds[a];
            kind_b := kinds[b];
            if kind_a = 2 and (kind_b = 2 or kind_b = 4 and vals[b] ~ '^[0-9]{1,18}$')
              or kind_b = 2 and kind_a = 4 and vals[a] ~ '^[0-9]{1,18}$' then
              kinds[d] := 2;
              vals[d] := case c when 1 then vals[a]::bigint + vals[b]::bigint when 2 then vals[a]::bigint - vals[b]::bigint
                when 3 then vals[a]::bigint * vals[b]::bigint else vals[a]::bigint / vals[b]::bigint end;
            else
              if kind_a is null or kind_b is null then
                perform :schema.script_fail('undefined', case when kind_a is null then a else b end::text);
              end if;
              select r.kind, r.val into kind_a, made from :schema.script_arithmetic(c, kind_a, vals[a], kind_b, vals[b]) r;
              kinds[d] := kind_a;
              vals[d] := made;
            end if;
            pc := pc + 5;
          else                                                          -- 6 MOVE d a
            a := code[pc + 2];
            d := code[pc + 1];
            if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
            kinds[d] := kinds[a];
            vals[d] := vals[a];
            revs[d] := revs[a];
            exps[d] := exps[a];
            pc := pc + 3;
          end if;
        elsif op = 7 then                                               -- CALL d fn a b
          a := code[pc + 3];
          b := code[pc + 4];
          c := code[pc + 2];
          d := code[pc + 1];
          if a > 0 and kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
          if b > 0 and kinds[b] is null then perform :schema.script_fail('undefined', b::text); end if;
          if c = 7 and (kinds[a] = 2 or kinds[a] = 4 and vals[a] ~ '^[0-9]{1,18}$') then  -- to_int, mostly
            kinds[d] := 2;
            vals[d] := vals[a]::bigint;
          elsif c in (22, 23, 24) then                                  -- count, rev, expires
            number := revs[a];
            kind_a := kinds[a];
            if c = 22 and kind_a < 5 then perform :schema.script_fail('argument-type', c::text); end if;
            kinds[d] := 2;
            if c = 22 then
              vals[d] := case kind_a when 5 then exps[a] when 6 then greatest(exps[a]::numeric - number + 1, 0) end;
            elsif kind_a >= 5 then
              vals[d] := case c when 23 then -1 else 0 end;
            elsif c = 23 then
              -- The revision carries itself.
              vals[d] := coalesce(number, -1);
              revs[d] := number;
              exps[d] := null;
            else
              vals[d] := coalesce(exps[a], 0);
            end if;
          else
            select r.kind, r.val into kind_a, made from :schema.script_call(c, kinds[a], vals[a], kinds[b], vals[b]) r;
            kinds[d] := kind_a;
            vals[d] := made;
          end if;
          pc := pc + 5;
        elsif op = 8 then                                               -- JUMP target
          pc := code[pc + 1];
        else                                                            -- 9 RETURN a (0: nothing)
          a := code[pc + 1];
          if a > 0 then
            if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
            kinds[1] := kinds[a];
            vals[1] := vals[a];
            revs[1] := revs[a];
            exps[1] := exps[a];
            answer := 3;
            from_register := true;
          end if;
          pc := pc + 2;
        end if;
      elsif op < 20 then
        if op < 14 then
          if op = 10 then                                               -- END
            exit;
          elsif op = 11 then                                            -- NOT d a
            a := code[pc + 2];
            d := code[pc + 1];
            kind_a := kinds[a];
            if kind_a is null then perform :schema.script_fail('undefined', a::text); end if;
            if kind_a >= 5 then perform :schema.script_fail('operand-type', 'not'); end if;
            vals[d] := case kind_a when 0 then true when 1 then vals[a] <> 'true' when 4 then false else vals[a]::float8 = 0 end;
            kinds[d] := 1;
            pc := pc + 3;
          elsif op = 12 then                                            -- AND, OR: d which a target; a alone decides, or go on
            a := code[pc + 3];
            d := code[pc + 1];
            kind_a := kinds[a];
            if kind_a is null then perform :schema.script_fail('undefined', a::text); end if;
            if kind_a not in (1, 2, 3) then perform :schema.script_fail('operand-type', 'logic'); end if;
            truth := case kind_a when 1 then vals[a] = 'true' else vals[a]::float8 <> 0 end;
            if truth = (code[pc + 2] = 2) then
              kinds[d] := 1;
              vals[d] := truth;
              pc := code[pc + 4];
            else
              pc := pc + 5;
            end if;
          else                                                          -- 13 LOGIC d a b: b decides; a told its kind
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            kind_b := kinds[b];
            if kind_b is null then perform :schema.script_fail('undefined', b::text); end if;
            if kind_b not in (1, 2, 3) or (kinds[a] = 1) <> (kind_b = 1) then
              perform :schema.script_fail('operand-type', 'logic');
            end if;
            vals[d] := case kind_b when 1 then vals[b] = 'true' else vals[b]::float8 <> 0 end;
            kinds[d] := 1;
            pc := pc + 4;
          end if;
        elsif op < 17 then
          if op = 14 then                                               -- NEGATE d a
            a := code[pc + 2];
            d := code[pc + 1];
            if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
            select r.kind, r.val into kind_a, made
              from :schema.script_arithmetic(case kinds[a] when 3 then 3 else 2 end, 2, case kinds[a] when 3 then '-1' else '0' end,
                kinds[a], vals[a]) r;
            kinds[d] := kind_a;
            vals[d] := made;
            pc := pc + 3;
          elsif op = 15 then                                            -- RANGE d a b
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            if kinds[a] is null or kinds[b] is null then
              perform :schema.script_fail('undefined', case when kinds[a] is null then a else b end::text);
            end if;
            if kinds[a] <> 2 or kinds[b] <> 2 then perform :schema.script_fail('operand-type', 'range'); end if;
            kinds[d] := 6;
            revs[d] := vals[a];
            exps[d] := vals[b];
            vals[d] := '';
            pc := pc + 4;
          else                                                          -- 16 INDEX d a i
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            if kinds[a] is null or kinds[b] is null then
              perform :schema.script_fail('undefined', case when kinds[a] is null then a else b end::text);
            end if;
            if kinds[a] < 5 or kinds[b] <> 2 or length(vals[b]) > 9 then perform :schema.script_fail('bad-index'); end if;
            c := vals[b];
            if kinds[a] = 6 then
              if c < 0 or revs[a] > exps[a] or exps[a]::numeric - revs[a] < c then perform :schema.script_fail('bad-index'); end if;
              kinds[d] := 2;
              vals[d] := revs[a] + c;
              revs[d] := null;
              exps[d] := null;
            else
              if c < 0 or c >= exps[a] then perform :schema.script_fail('bad-index'); end if;
              c := c + revs[a];
              kinds[d] := heap_kinds[c];
              vals[d] := heap_vals[c];
              revs[d] := heap_revs[c];
              exps[d] := heap_exps[c];
            end if;
            pc := pc + 4;
          end if;
        elsif op = 17 then                                              -- FOR s a: prepares the loop register
          a := code[pc + 2];
          d := code[pc + 1];
          if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
          if kinds[a] < 5 then perform :schema.script_fail('not-iterable'); end if;
          kinds[d] := kinds[a];
          vals[d] := '';
          revs[d] := revs[a];
          exps[d] := exps[a];
          pc := pc + 3;
        elsif op = 18 then                                              -- NEXT v s target cost: the next item, or on to target
          a := code[pc + 2];
          d := code[pc + 1];
          steps := steps + code[pc + 4];
          if steps > 1000000 then perform :schema.script_fail('too-many-steps'); end if;
          if clock_timestamp() > deadline then perform :schema.script_fail('abort:timeout'); end if;
          number := revs[a];
          if kinds[a] = 5 then
            if exps[a] = 0 then
              pc := code[pc + 3];
            else
              kinds[d] := heap_kinds[number];
              vals[d] := heap_vals[number];
              revs[d] := heap_revs[number];
              exps[d] := heap_exps[number];
              revs[a] := number + 1;
              exps[a] := exps[a] - 1;
              pc := pc + 5;
            end if;
          elsif kinds[a] = 6 and number <= exps[a] then
            kinds[d] := 2;
            vals[d] := number;
            revs[d] := null;
            exps[d] := null;
            if number = exps[a] then
              kinds[a] := 0;
            else
              revs[a] := number + 1;
            end if;
            pc := pc + 5;
          else
            pc := code[pc + 3];
          end if;
        else                                                            -- 19 ARRAY d count registers
          d := code[pc + 1];
          count := code[pc + 2];
          if heap_size + count > 100000 then perform :schema.script_fail('too-large', 'arrays'); end if;
          for i in 1..count loop
            a := code[pc + 2 + i];
            if (kinds[a] < 5) is not true then
              perform :schema.script_fail(case when kinds[a] is null then 'undefined' else 'nested-array' end, a::text);
            end if;
            heap_kinds[heap_size + i] := kinds[a];
            heap_vals[heap_size + i] := vals[a];
            heap_revs[heap_size + i] := revs[a];
            heap_exps[heap_size + i] := exps[a];
            heap_keys[heap_size + i] := null;
            heap_times[heap_size + i] := null;
          end loop;
          kinds[d] := 5;
          vals[d] := '';
          revs[d] := heap_size + 1;
          exps[d] := count;
          heap_size := heap_size + count;
          pc := pc + 3 + count;
        end if;
      elsif op < 26 then
        if clock_timestamp() > deadline then perform :schema.script_fail('abort:timeout'); end if;
        if op = 20 then                                                 -- READ d key flags r: 1 ephemeral 2 quiet 4 exists 8 at 16 as of
          a := code[pc + 1];
          flags := code[pc + 3];
          b := code[pc + 4];
          if b > 0 and kinds[b] is null then perform :schema.script_fail('undefined', b::text); end if;
          if flags & 8 > 0 then
            select g.found, g.value, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from :schema.key_get_revision(tenant, flags & 1 > 0, keys[code[pc + 2]],
                :schema.script_integer(kinds[b], vals[b], 'number-format')) g;
          elsif flags & 16 > 0 then
            select g.found, g.value, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from :schema.key_get_as_of(tenant, flags & 1 > 0, keys[code[pc + 2]],
                :schema.script_instant(kinds[b], vals[b])) g;
          else
            select g.found, null, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from :schema.key_get(tenant, flags & 1 > 0, keys[code[pc + 2]]) g;
          end if;
          if a > 0 then
            if flags & 4 > 0 then
              kinds[a] := 1;
              vals[a] := done;
            elsif done then
              kinds[a] := 4;
              vals[a] := convert_from(bytes, 'UTF8');
            else
              kinds[a] := 0;
              vals[a] := '';
            end if;
            revs[a] := case when done then found_revision end;
            exps[a] := case when done then floor(extract(epoch from expires) * 1000) end;
          end if;
          if flags & 2 = 0 then
            answer := case when not done then 5 when flags & 4 > 0 then 4 else 3 end;
            if flags & 4 > 0 then
              bytes := null;
              if not done then found_revision := 0; end if;
            end if;
            from_register := false;
            found_key := code[pc + 2];
          end if;
          pc := pc + 5;
        elsif op = 21 then                                              -- LIST d key flags r: 1 ephemeral 2 quiet 4 prefix 16 as of
          a := code[pc + 1];
          flags := code[pc + 3];
          b := code[pc + 4];
          if b > 0 and kinds[b] is null then perform :schema.script_fail('undefined', b::text); end if;
          number := case when b > 0 then :schema.script_instant(kinds[b], vals[b]) end;
          listing := null;
          if a = 0 then
            if flags & 4 > 0 then
              select count(*), sum(octet_length(l.value)), json_agg(json_build_array(l.key, encode(l.value, 'hex'), l.revision::text,
                  floor(extract(epoch from l.expires_at) * 1000), floor(extract(epoch from l.modified_at) * 1000)))::text
                into count, number, listing
                from (select * from :schema.key_prefix(tenant, flags & 1 > 0, keys[code[pc + 2]], number) limit 100001) l;
            else
              select count(*), sum(octet_length(l.value)), json_agg(json_build_array(l.key, encode(l.value, 'hex'), l.revision::text,
                  floor(extract(epoch from l.expires_at) * 1000), floor(extract(epoch from l.modified_at) * 1000)))::text
                into count, number, listing
                from (select * from :schema.key_bucket(tenant, flags & 1 > 0, keys[code[pc + 2]], number) limit 100001) l;
            end if;
            if count > 100000 or number > 67108864 then perform :schema.script_fail('too-large', 'listing'); end if;
          else
            declare
              new_vals text[];
              new_revs bigint[];
              new_exps bigint[];
              new_keys text[];
              new_times bigint[];
            begin
              select count(*), array_agg(convert_from(l.value, 'UTF8')), array_agg(l.revision),
                  array_agg(floor(extract(epoch from l.expires_at) * 1000)::bigint), array_agg(l.key),
                  array_agg(floor(extract(epoch from l.modified_at) * 1000)::bigint)
                into count, new_vals, new_revs, new_exps, new_keys, new_times
                from (
                  select * from :schema.key_prefix(tenant, flags & 1 > 0, keys[code[pc + 2]], number) where flags & 4 > 0
                  union all
                  select * from :schema.key_bucket(tenant, flags & 1 > 0, keys[code[pc + 2]], number) where flags & 4 = 0
                  limit 100001
                ) l;
              if heap_size + count > 100000 then perform :schema.script_fail('too-large', 'arrays'); end if;
              kinds[a] := 5;
              vals[a] := '';
              revs[a] := heap_size + 1;
              exps[a] := count;
              if count > 0 then
                heap_kinds := heap_kinds || array_fill(4, array[count]);
                heap_vals := heap_vals || new_vals;
                heap_revs := heap_revs || new_revs;
                heap_exps := heap_exps || new_exps;
                heap_keys := heap_keys || new_keys;
                heap_times := heap_times || new_times;
                heap_size := heap_size + count;
              end if;
            end;
          end if;
          if flags & 2 = 0 then
            answer := case when count > 0 then 3 else 5 end;
            from_register := a > 0 and count > 0;
            if from_register then
              kinds[1] := 5;
              vals[1] := '';
              revs[1] := revs[a];
              exps[1] := exps[a];
            end if;
            bytes := null;
            found_revision := -1;
            expires := null;
            modified := null;
            found_key := null;
          end if;
          pc := pc + 5;
        elsif op = 22 then                                              -- DELETE d key flags
          select s.done, s.revision into done, found_revision
            from :schema.key_delete(tenant, code[pc + 3] & 1 > 0, keys[code[pc + 2]], null, null) s;
          answer := case when done then 6 else 5 end;
          if not done then found_revision := greatest(found_revision, 0); end if;
          written := answer;
          from_register := false;
          bytes := null;
          expires := null;
          modified := null;
          found_key := code[pc + 2];
          a := code[pc + 1];
          if a > 0 then
            kinds[a] := 1;
            vals[a] := done;
          end if;
          pc := pc + 4;
        elsif op = 23 then                                              -- EXTEND d key flags ttl
          b := code[pc + 4];
          if kinds[b] is null then perform :schema.script_fail('undefined', b::text); end if;
          select s.done, s.revision, s.expires_at into done, found_revision, expires
            from :schema.key_extend(tenant, code[pc + 3] & 1 > 0, keys[code[pc + 2]],
              nullif(:schema.script_ttl(kinds[b], vals[b]), 0)) s;
          answer := case when done then 7 else 5 end;
          if not done then found_revision := greatest(found_revision, 0); end if;
          written := answer;
          from_register := false;
          bytes := null;
          modified := null;
          found_key := code[pc + 2];
          a := code[pc + 1];
          if a > 0 then
            kinds[a] := 1;
            vals[a] := done;
          end if;
          pc := pc + 5;
        elsif op = 24 then                                              -- SLEEP a
          a := code[pc + 1];
          if kinds[a] is null then perform :schema.script_fail('undefined', a::text); end if;
          number := :schema.script_integer(kinds[a], vals[a], 'bad-sleep');
          if number not between 0 and 300000 then perform :schema.script_fail('bad-sleep'); end if;
          if clock_timestamp() + number * interval '1 millisecond' > deadline then perform :schema.script_fail('abort:timeout'); end if;
          perform pg_sleep(number / 1000.0);
          pc := pc + 2;
        else                                                            -- 25 CLEAR a: the value was not read
          a := code[pc + 1];
          revs[a] := null;
          exps[a] := null;
          pc := pc + 2;
        end if;
      elsif op = 26 then                                                -- STATUS d which: 1 not set, 2 not found
        d := code[pc + 1];
        if code[pc + 2] = 1 and written is null then perform :schema.script_fail('no-previous-write'); end if;
        kinds[d] := 1;
        vals[d] := case code[pc + 2] when 1 then written <> 1 else answer not in (3, 4) end;
        pc := pc + 3;
      elsif op = 27 then                                                -- THROW a
        a := code[pc + 1];
        if (kinds[a] < 5) is not true then
          perform :schema.script_fail(case when kinds[a] is null then 'undefined' else 'array-not-storable' end, a::text);
        end if;
        perform :schema.script_fail('throw', case kinds[a] when 0 then '(null)' else vals[a] end);
      elsif op = 28 then                                                -- ABORT, FAIL: the library knows why
        perform :schema.script_fail('stop');
      else
        perform :schema.script_fail('fault', op::text);
      end if;
    end loop;

    if lock_names is not null then
      if persistent > 0 then perform :schema.key_unlock_unwritten(tenant, false, lock_names[1 : persistent]); end if;
      if persistent < cardinality(lock_names) then
        perform :schema.key_unlock_unwritten(tenant, true, lock_names[persistent + 1 : cardinality(lock_names)]);
      end if;
    end if;
    perform set_config('lock_timeout', old_wait, true);

    if from_register and kinds[1] < 5 then
      value := encode(convert_to(vals[1], 'UTF8'), 'hex');
      revision := coalesce(revs[1], -1);
      expires_at := exps[1];
    elsif from_register and kinds[1] = 6 then
      if exps[1]::numeric - revs[1] >= 100000 then perform :schema.script_fail('too-large', 'range'); end if;
      select coalesce(json_agg(json_build_array(null, encode(convert_to(n::text, 'UTF8'), 'hex'), '-1', null, null))::text, '[]')
        into items
        from generate_series(revs[1], exps[1]) n;
    elsif from_register then
      select coalesce(json_agg(json_build_array(heap_keys[n], encode(convert_to(heap_vals[n], 'UTF8'), 'hex'),
          coalesce(heap_revs[n], -1)::text, heap_exps[n], heap_times[n]))::text, '[]') into items
        from generate_series(revs[1], revs[1] + exps[1] - 1) n;
    elsif answer > 0 then
      if found_key is null then items := listing; end if;
      key := keys[found_key];
      if answer = 3 then value := encode(bytes, 'hex'); end if;
      revision := found_revision;
      expires_at := floor(extract(epoch from expires) * 1000);
      modified_at := floor(extract(epoch from modified) * 1000);
    end if;
    at := pc;
  exception
    when serialization_failure then
      raise;
    when others then
      get stacked diagnostics failure = returned_sqlstate, reason = message_text, detail = pg_exception_detail;
      at := pc;
      answer := 0;
      case failure
        when 'HF100' then null;
        when '22012' then reason := 'division-by-zero';
        when '22003' then reason := 'overflow';
        when '22021', '22P05' then reason := 'not-text';
        when 'HF001' then
          detail := reason;
          reason := 'invalid-input';
        when '55P03' then reason := 'abort:lock-timeout';
        when '40P01' then
          if not in_transaction then raise; end if;
          reason := 'abort:conflict';
        else raise;
      end case;
  end;
end
$function$;
