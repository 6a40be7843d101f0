/* SPDX-License-Identifier: MIT */
/* Reads .robot files, whose format is at the top of model.h. Called by bullet.c when an environment
 * is opened.
 *
 * Invariants: bodies and solids keep the order of the file, which the engine's results depend on,
 * and a body's parent has a smaller index. Every message starts with FILE:LINE. */
#include "env/bullet/model.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

struct reader {
    const char *next; /* the unread text */
    int line;         /* of the word just read */
    char word[512];   /* empty at the end of the text */
    struct opc_bullet_robot *robot;
    struct opc_err *err;
};

/* Whether a property belongs to the body or to the solid that was named last. */
enum { OF_BODY, OF_SOLID };

/* A word that is followed by `count` numbers, and the member they are stored in. */
struct property {
    const char *word;
    int of, count; /* count 0: one integer */
    size_t offset;
};

/* clang-format off */
static const struct property properties[] = {
    {"axis",     OF_BODY,  3, offsetof(struct opc_bullet_body, axis)},
    {"pivot",    OF_BODY,  3, offsetof(struct opc_bullet_body, pivot)},
    {"com",      OF_BODY,  3, offsetof(struct opc_bullet_body, com)},
    {"mass",     OF_BODY,  1, offsetof(struct opc_bullet_body, mass)},
    {"inertia",  OF_BODY,  3, offsetof(struct opc_bullet_body, inertia)},
    {"insert",   OF_BODY,  3, offsetof(struct opc_bullet_body, insert)},
    {"group",    OF_BODY,  0, offsetof(struct opc_bullet_body, group)},
    {"mask",     OF_BODY,  0, offsetof(struct opc_bullet_body, mask)},
    {"friction", OF_BODY,  1, offsetof(struct opc_bullet_body, friction)},
    {"from",     OF_SOLID, 3, offsetof(struct opc_bullet_shape, from)},
    {"to",       OF_SOLID, 3, offsetof(struct opc_bullet_shape, to)},
    {"at",       OF_SOLID, 3, offsetof(struct opc_bullet_shape, at)},
    {"turn",     OF_SOLID, 4, offsetof(struct opc_bullet_shape, turn)},
};
/* clang-format on */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Blanks, line ends and comments; counts lines for messages. */
static void skip_blanks(struct reader *reader)
{
    bool comment = false;
    for (; *reader->next && (comment || is_blank(*reader->next) || *reader->next == '#');
         reader->next++) {
        if (*reader->next == '\n')
            reader->line++, comment = false;
        else if (*reader->next == '#')
            comment = true;
    }
}

/* The next word of the text, empty at its end. A word that does not fit the buffer is cut, and then
 * refused as a name or number because of its length. */
static const char *read_word(struct reader *reader)
{
    size_t n = 0;
    skip_blanks(reader);
    for (; *reader->next && !is_blank(*reader->next) && *reader->next != '#'; reader->next++)
        if (n < sizeof reader->word - 1)
            reader->word[n++] = *reader->next;
    reader->word[n] = 0;
    return reader->word;
}

/* The word just read, or what stands for its absence. */
static const char *word_for_message(const struct reader *reader)
{
    return *reader->word ? reader->word : "end of file";
}

/* A name that is empty or too long is refused. */
static int read_name(struct reader *reader, const char *of, char name[OPC_BULLET_WORD])
{
    const char *word = read_word(reader);
    const size_t n = strlen(word);
    if (n == 0 || n >= OPC_BULLET_WORD)
        return opc_fail(reader->err, OPC_EUSER,
                        "'%s' will not do as the name of a %s; 1 to %d letters",
                        word_for_message(reader), of, OPC_BULLET_WORD - 1);
    memcpy(name, word, n + 1);
    return OPC_OK;
}

/* Reads `count` finite numbers; `what` is the word they belong to. */
static int read_numbers(struct reader *reader, const char *what, int count, double *out)
{
    for (int i = 0; i < count; i++) {
        const char *word = read_word(reader);
        double v;
        if (!opc_parse_real(word, &v) || !isfinite(v))
            return opc_fail(reader->err, OPC_EUSER, "'%s' is not a number; %s takes %d",
                            word_for_message(reader), what, count);
        out[i] = v;
    }
    return OPC_OK;
}

static int read_integer(struct reader *reader, const char *what, int *out)
{
    if (!opc_parse_int(read_word(reader), out))
        return opc_fail(reader->err, OPC_EUSER, "'%s' is not a whole number; %s takes one",
                        word_for_message(reader), what);
    return OPC_OK;
}

/* The body being described; there is at least one when this is called. */
static struct opc_bullet_body *this_body(const struct reader *reader)
{
    return &reader->robot->body[reader->robot->bodies - 1];
}

/* The solid being described; NULL if this body has none yet. */
static struct opc_bullet_shape *this_solid(const struct reader *reader)
{
    /* The last solid, if it belongs to the body being described. */
    struct opc_bullet_shape *last = reader->robot->shape + reader->robot->shapes - 1;
    return reader->robot->shapes > 0 && last->body == reader->robot->bodies - 1 ? last : NULL;
}

/* "body NAME". Until a joint is named, the first body is a fixed base and others are welded. */
static int start_body(struct reader *reader)
{
    struct opc_bullet_robot *robot = reader->robot;
    struct opc_bullet_body b = {.parent = -1, .joint = OPC_BULLET_FIXED_BASE};
    if (robot->bodies == OPC_BULLET_BODIES)
        return opc_fail(reader->err, OPC_EUSER, "more than %d bodies; raise OPC_BULLET_BODIES",
                        OPC_BULLET_BODIES);
    const int code = read_name(reader, "body", b.name);
    if (code)
        return code;
    /* Names are looked up later, so they must be unique. */
    if (opc_bullet_find_body(robot, b.name) >= 0)
        return opc_fail(reader->err, OPC_EUSER, "there is a body '%s' already; choose another name",
                        b.name);
    if (robot->bodies > 0)
        b.joint = OPC_BULLET_WELD;
    robot->body[robot->bodies++] = b;
    return OPC_OK;
}

/* "base free" or "base fixed". */
static int read_base(struct reader *reader)
{
    const char *word = read_word(reader);
    /* Only the first body has no parent. */
    if (reader->robot->bodies != 1)
        return opc_fail(reader->err, OPC_EUSER,
                        "body '%s' is not the first; it needs slide, hinge or weld, not base",
                        this_body(reader)->name);
    if (strcmp(word, "free") && strcmp(word, "fixed"))
        return opc_fail(reader->err, OPC_EUSER, "a base is free or fixed, not '%s'",
                        word_for_message(reader));
    this_body(reader)->joint = strcmp(word, "free") ? OPC_BULLET_FIXED_BASE : OPC_BULLET_FREE_BASE;
    return OPC_OK;
}

/* "slide NAME", "hinge NAME" or "weld". */
static int read_joint(struct reader *reader, enum opc_bullet_joint joint)
{
    struct opc_bullet_body *b = this_body(reader);
    char name[OPC_BULLET_WORD] = "";
    if (reader->robot->bodies == 1)
        return opc_fail(reader->err, OPC_EUSER,
                        "body '%s' comes first; say base fixed or base free", b->name);
    /* A weld has no name: nothing ever refers to it. */
    const int code = joint == OPC_BULLET_WELD ? OPC_OK : read_name(reader, "joint", name);
    if (code)
        return code;
    if (*name && opc_bullet_find_joint(reader->robot, name) >= 0)
        return opc_fail(reader->err, OPC_EUSER,
                        "there is a joint '%s' already; choose another name", name);
    memcpy(b->joint_name, name, sizeof name);
    b->joint = joint;
    return OPC_OK;
}

/* "on BODY". */
static int read_parent(struct reader *reader)
{
    struct opc_bullet_body *b = this_body(reader);
    const int parent = opc_bullet_find_body(reader->robot, read_word(reader));
    /* Not itself, and described above: parents have smaller indices. */
    if (parent < 0 || parent == reader->robot->bodies - 1)
        return opc_fail(reader->err, OPC_EUSER, "no body '%s' above body '%s'; parents come first",
                        word_for_message(reader), b->name);
    b->parent = parent;
    return OPC_OK;
}

/* "range LOWER UPPER". */
static int read_range(struct reader *reader)
{
    struct opc_bullet_body *b = this_body(reader);
    double range[2] = {0};
    const int code = read_numbers(reader, "range", 2, range);
    if (code)
        return code;
    if (!(range[0] < range[1]))
        return opc_fail(reader->err, OPC_EUSER, "range %g %g is empty; the lower end comes first",
                        range[0], range[1]);
    b->limited = true;
    b->lower = range[0];
    b->upper = range[1];
    return OPC_OK;
}

/* "sphere R", "capsule_z R H" or "two_spheres R". */
static int read_solid(struct reader *reader, enum opc_bullet_solid solid)
{
    struct opc_bullet_robot *robot = reader->robot;
    struct opc_bullet_shape s = {.body = robot->bodies - 1, .solid = solid, .turn = {1, 0, 0, 0}};
    const char *what = "a solid (radius, and height for capsule_z)";
    double size[2] = {0};
    if (robot->shapes == OPC_BULLET_SHAPES)
        return opc_fail(reader->err, OPC_EUSER, "more than %d solids; raise OPC_BULLET_SHAPES",
                        OPC_BULLET_SHAPES);
    const int code = read_numbers(reader, what, solid == OPC_BULLET_CAPSULE_Z ? 2 : 1, size);
    if (code)
        return code;
    if (!(size[0] > 0) || !(size[1] >= 0))
        return opc_fail(reader->err, OPC_EUSER,
                        "a solid of radius %g and height %g; above 0 would do", size[0], size[1]);
    s.radius = size[0];
    s.height = size[1];
    robot->shape[robot->shapes++] = s;
    return OPC_OK;
}

/* A property of a solid stands before any solid of its body. */
static int needs_solid(struct reader *reader, const char *word)
{
    return opc_fail(reader->err, OPC_EUSER,
                    "%s belongs to a solid; name sphere, capsule_z or two_spheres before it", word);
}

/* "turn_y ANGLE": the quaternion of a rotation about the y axis. */
static int read_turn_y(struct reader *reader)
{
    struct opc_bullet_shape *s = this_solid(reader);
    double angle = 0;
    if (!s)
        return needs_solid(reader, "turn_y");
    const int code = read_numbers(reader, "turn_y", 1, &angle);
    if (code)
        return code;
    s->turn[0] = cos(angle / 2);
    s->turn[2] = sin(angle / 2);
    return OPC_OK;
}

/* All words whose numbers are stored as they are, by the table above. */
static int read_property(struct reader *reader)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        const struct property *p = &properties[i];
        char *to;
        if (strcmp(reader->word, p->word))
            continue;
        if (p->of == OF_SOLID && !this_solid(reader))
            return needs_solid(reader, p->word);
        /* The member is found by its offset, as settings are (base/field.h). */
        to = p->of == OF_BODY ? (char *)this_body(reader) : (char *)this_solid(reader);
        if (p->count == 0)
            return read_integer(reader, p->word, (int *)(void *)(to + p->offset));
        return read_numbers(reader, p->word, p->count, (double *)(void *)(to + p->offset));
    }
    return opc_fail(reader->err, OPC_EUSER,
                    "'%s' is not known here; body, base, slide, hinge, weld, on, range, axis, "
                    "pivot, com, mass, inertia, insert, group, mask, friction, sphere, capsule_z, "
                    "two_spheres, from, to, at, turn or turn_y would be",
                    reader->word);
}

/* One word with what belongs to it. */
static int read_item(struct reader *reader)
{
    const char *word = reader->word;
    if (!strcmp(word, "body"))
        return start_body(reader);
    if (reader->robot->bodies == 0)
        return opc_fail(reader->err, OPC_EUSER, "'%s' stands outside a body; start with body NAME",
                        word);
    if (!strcmp(word, "base"))
        return read_base(reader);
    if (!strcmp(word, "slide"))
        return read_joint(reader, OPC_BULLET_SLIDE);
    if (!strcmp(word, "hinge"))
        return read_joint(reader, OPC_BULLET_HINGE);
    if (!strcmp(word, "weld"))
        return read_joint(reader, OPC_BULLET_WELD);
    if (!strcmp(word, "on"))
        return read_parent(reader);
    if (!strcmp(word, "range"))
        return read_range(reader);
    if (!strcmp(word, "sphere"))
        return read_solid(reader, OPC_BULLET_SPHERE);
    if (!strcmp(word, "capsule_z"))
        return read_solid(reader, OPC_BULLET_CAPSULE_Z);
    if (!strcmp(word, "two_spheres"))
        return read_solid(reader, OPC_BULLET_TWO_SPHERES);
    if (!strcmp(word, "turn_y"))
        return read_turn_y(reader);
    return read_property(reader);
}

/* Tests what can only be judged once the whole body has been read. */
static int check_body(struct reader *reader)
{
    const struct opc_bullet_body *b = this_body(reader);
    const bool moves = b->joint == OPC_BULLET_SLIDE || b->joint == OPC_BULLET_HINGE;
    if (reader->robot->bodies > 1 && b->parent < 0)
        return opc_fail(reader->err, OPC_EUSER, "body '%s' hangs on nothing; add on BODY", b->name);
    if (moves && !(b->axis[0] || b->axis[1] || b->axis[2]))
        return opc_fail(reader->err, OPC_EUSER, "joint '%s' has no axis; add axis X Y Z",
                        b->joint_name);
    if (b->limited && !moves)
        return opc_fail(reader->err, OPC_EUSER, "body '%s' has a range but no slide or hinge",
                        b->name);
    if (b->mass < 0 || b->inertia[0] < 0 || b->inertia[1] < 0 || b->inertia[2] < 0)
        return opc_fail(reader->err, OPC_EUSER,
                        "body '%s' has a negative mass or inertia; 0 or more would do", b->name);
    if (b->joint == OPC_BULLET_FREE_BASE && !(b->mass > 0))
        return opc_fail(reader->err, OPC_EUSER,
                        "free base '%s' weighs nothing; add mass and inertia", b->name);
    /* A zero quaternion cannot be normalised when the picture is drawn. */
    for (int i = 0; i < reader->robot->shapes; i++) {
        const struct opc_bullet_shape *s = &reader->robot->shape[i];
        if (s->turn[0] == 0 && s->turn[1] == 0 && s->turn[2] == 0 && s->turn[3] == 0)
            return opc_fail(reader->err, OPC_EUSER,
                            "turn 0 0 0 0 is not a rotation; 1 0 0 0 leaves the solid unturned");
    }
    return OPC_OK;
}

static int read_all(struct reader *reader)
{
    int code = OPC_OK;
    while (!code && *read_word(reader)) {
        /* A new body ends the one before it. */
        if (reader->robot->bodies > 0 && !strcmp(reader->word, "body"))
            code = check_body(reader);
        if (!code)
            code = read_item(reader);
    }
    if (code)
        return code;
    if (reader->robot->bodies == 0)
        return opc_fail(reader->err, OPC_EUSER, "no robot here; start with body NAME");
    return check_body(reader);
}

int opc_bullet_robot_parse(const char *text, const char *where, struct opc_bullet_robot *out,
                           struct opc_err *err)
{
    struct reader reader = {.next = text, .line = 1, .robot = out, .err = err};
    memset(out, 0, sizeof *out);
    const int code = read_all(&reader);
    if (code)
        opc_within(err, "%s:%d", where, reader.line);
    return code;
}

int opc_bullet_find_body(const struct opc_bullet_robot *robot, const char *name)
{
    for (int i = 0; i < robot->bodies; i++)
        if (!strcmp(robot->body[i].name, name))
            return i;
    return -1;
}

/* Joints have no table of their own: joint j is the j-th slide or hinge in body order. */
int opc_bullet_joint_body(const struct opc_bullet_robot *robot, int j)
{
    for (int i = 0; i < robot->bodies; i++) {
        const enum opc_bullet_joint joint = robot->body[i].joint;
        if ((joint == OPC_BULLET_SLIDE || joint == OPC_BULLET_HINGE) && j-- == 0)
            return i;
    }
    return -1;
}

int opc_bullet_find_joint(const struct opc_bullet_robot *robot, const char *name)
{
    int body;
    for (int j = 0; (body = opc_bullet_joint_body(robot, j)) >= 0; j++)
        if (!strcmp(robot->body[body].joint_name, name))
            return j;
    return -1;
}
