# SPDX-License-Identifier: MIT
# Writes the tables of a Markdown file anew from the CSV files that the program wrote. `./dev tables`
# calls it, and tests/program/tables.sh compares the result with what is in the tree.
#
# A table is between two comments, which Markdown does not show:
#
#     <!-- table FILE.csv, LABEL
#     FILE.csv
#     | HEADING = TEMPLATE | HEADING = TEMPLATE | only FIELD=VALUE -->
#     <!-- end -->
#
# FILE is relative to the Markdown file, whose folder awk is given with -v at=FOLDER; a label is optional.
# Each row of the CSV files, in their order, becomes a row of the table. In a template {field} is the row's
# value and {field:FORMAT} the value as: n (rounded, with separators: 1,656), n2 (with two digits after the
# point), code (in backticks); {field?} may be missing in a file. {label} is the label of the file; a label may have parts,
# A / B / C, which are {label}, {label 2} and {label 3}. {count FIELD=VALUE} is the number of rows of the file with
# that value, and makes the table have one row for each file. A cell whose fields are all empty
# stays empty, and so does {count} of nothing. `only` takes the rows whose value matches as a whole; the value
# may be an extended regular expression. With `only FIELD?=VALUE` a file without this field keeps all its rows.

function die(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    failed = 1
    exit 1
}

# Splits a line of CSV, where quotes may hold commas, into out[1..n].
function csv(line, out,    n, field, c, i, quoted) {
    n = 0
    field = ""
    quoted = 0
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (c == "\"") {
            if (quoted && substr(line, i + 1, 1) == "\"") {
                field = field "\""
                i++
            } else
                quoted = !quoted
        } else if (c == "," && !quoted) {
            out[++n] = field
            field = ""
        } else
            field = field c
    }
    out[++n] = field
    return n
}

# 1655.97 as 1,656, or as 1,655.97 with two digits.
function number(value, digits,    text, whole, rest, out) {
    if (value !~ /^-?[0-9.]+(e[-+]?[0-9]+)?$/)
        return value
    text = sprintf("%." digits "f", value + 0)
    rest = ""
    if (digits) {
        rest = substr(text, length(text) - digits)
        text = substr(text, 1, length(text) - digits - 1)
    }
    out = ""
    whole = text
    sub(/^-/, "", whole)
    while (length(whole) > 3) {
        out = "," substr(whole, length(whole) - 2) out
        whole = substr(whole, 1, length(whole) - 3)
    }
    return (text ~ /^-/ ? "-" : "") whole out rest
}

# The value of one {field:format} of a template in the present row; asks `value` and `count`.
function fill(expression,    part, n) {
    if (expression ~ /^count /) {
        sub(/^count /, "", expression)
        if (!(expression in count))
            return ""
        any = 1
        return count[expression]
    }
    n = split(expression, part, ":")
    if (sub(/\?$/, "", part[1]) && !(part[1] in value))
        return ""
    if (!(part[1] in value))
        die("no column '" part[1] "' in " csv_file)
    if (value[part[1]] == "")
        return ""
    any = 1
    if (n == 1) {
        expression = value[part[1]]
        gsub(/[*|]/, "\\\\&", expression)
        return expression
    }
    if (part[2] == "n")
        return number(value[part[1]], 0)
    if (part[2] == "n2")
        return number(value[part[1]], 2)
    if (part[2] == "code")
        return "`" value[part[1]] "`"
    die("unknown format '" part[2] "'")
}

# A template with its fields filled in.
function cell(template,    out, fields) {
    out = ""
    any = fields = 0
    while (match(template, /\{[^}]*\}/)) {
        fields++
        out = out substr(template, 1, RSTART - 1) fill(substr(template, RSTART + 1, RLENGTH - 2))
        template = substr(template, RSTART + RLENGTH)
    }
    out = out template
    sub(/^ +/, "", out)
    return fields && !any ? "" : out
}

function print_row(    line, i) {
    line = "|"
    for (i = 1; i <= columns; i++) {
        any = 0
        line = line " " cell(template_of[i]) " |"
    }
    gsub(/\|  \|/, "| |", line)
    gsub(/\|  \|/, "| |", line)
    print line
}

# Reads one CSV file and prints a row for each of its own, or one for all of them.
function print_file(name, label,    header, cells, n, i, line, keep, known, part_of_label, parts) {
    csv_file = at "/" name
    parts = split(label, part_of_label, " / ")
    if (!parts)
        part_of_label[1] = ""
    delete count
    known = 0
    while ((getline line <csv_file) > 0) {
        if (!known) {
            known = csv(line, header)
            continue
        }
        n = csv(line, cells)
        delete value
        for (i = 1; i <= known; i++)
            value[header[i]] = i <= n ? cells[i] : ""
        value["label"] = part_of_label[1]
        value["label 2"] = parts > 1 ? part_of_label[2] : ""
        value["label 3"] = parts > 2 ? part_of_label[3] : ""
        keep = 1
        for (i = 1; i <= filters; i++) {
            if (filter_optional[i] && !(filter_field[i] in value))
                continue
            if (!(filter_field[i] in value))
                die("no column '" filter_field[i] "' in " csv_file)
            if (value[filter_field[i]] !~ "^(" filter_value[i] ")$")
                keep = 0
        }
        if (!keep)
            continue
        for (i in value)
            count[i "=" value[i]]++
        if (!counting)
            print_row()
    }
    close(csv_file)
    if (!known)
        die("cannot read " csv_file)
    if (counting)
        print_row()
}

function print_table(spec,    part, n, i, files, file, label, heading, rule, at_equal) {
    n = split(spec, part, /[ \n]\| */)
    columns = filters = counting = 0
    heading = "|"
    rule = "|"
    for (i = 2; i <= n; i++) {
        sub(/[ \n]+$/, "", part[i])
        if (part[i] ~ /^only /) {
            sub(/^only /, "", part[i])
            at_equal = index(part[i], "=")
            filter_field[++filters] = substr(part[i], 1, at_equal - 1)
            filter_value[filters] = substr(part[i], at_equal + 1)
            filter_optional[filters] = sub(/\?$/, "", filter_field[filters])
            continue
        }
        at_equal = index(part[i], " = ")
        if (!at_equal)
            die("write HEADING = TEMPLATE, not '" part[i] "'")
        heading = heading " " substr(part[i], 1, at_equal - 1) " |"
        rule = rule "---|"
        template_of[++columns] = substr(part[i], at_equal + 3)
        if (template_of[columns] ~ /\{count /)
            counting = 1
    }
    print heading
    print rule
    files = split(part[1], file, "\n")
    for (i = 1; i <= files; i++) {
        label = file[i]
        if (!sub(/^[^,]*, */, "", label))
            label = ""
        sub(/,.*/, "", file[i])
        print_file(file[i], label)
    }
}

# ---- the document, line by line ----------------------------------------------------------------------
/^<!-- table / {
    if (inside)
        die("the table before has no <!-- end -->")
    inside = FNR
    reading = 1
    spec = ""
    sub(/^<!-- table /, "")
    printf "<!-- table "
}
reading {
    print
    last = sub(/ *-->$/, "")
    spec = spec (spec == "" ? "" : "\n") $0
    if (last) {
        reading = 0
        print_table(spec)
    }
    next
}
/^<!-- end -->$/ {
    if (!inside)
        die("<!-- end --> without a table")
    inside = 0
}
!inside
END {
    if (inside && !failed) {
        printf "%s:%d: this table has no <!-- end -->\n", FILENAME, inside >"/dev/stderr"
        exit 1
    }
    exit failed
}
