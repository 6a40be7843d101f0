/* SPDX-License-Identifier: MIT */
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

enum { OF_BODY, OF_SOLID };

/* A word that is followed by numbers, which go where it says. */
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

static void skip_blanks(struct reader *r)
{
    bool comment = false;
    for (; *r->next && (comment || is_blank(*r->next) || *r->next == '#'); r->next++) {
        if (*r->next == '\n')
            r->line++, comment = false;
        else if (*r->next == '#')
            comment = true;
    }
}

/* Next word of the text, empty at its end. One that had to be cut is too long for a name or a
 * number. */
static const char *read_word(struct reader *r)
{
    size_t n = 0;
    skip_blanks(r);
    for (; *r->next && !is_blank(*r->next) && *r->next != '#'; r->next++)
        if (n < sizeof r->word - 1)
            r->word[n++] = *r->next;
    r->word[n] = 0;
    return r->word;
}

static const char *shown(const struct reader *r)
{
    return *r->word ? r->word : "end of file";
}

static int read_name(struct reader *r, const char *of, char name[OPC_BULLET_WORD])
{
    const char *word = read_word(r);
    const size_t n = strlen(word);
    if (n == 0 || n >= OPC_BULLET_WORD)
        return opc_fail(r->err, OPC_EUSER, "'%s' will not do as the name of a %s; 1 to %d letters",
                        shown(r), of, OPC_BULLET_WORD - 1);
    memcpy(name, word, n + 1);
    return OPC_OK;
}

static int read_numbers(struct reader *r, const char *what, int count, double *out)
{
    for (int i = 0; i < count; i++) {
        const char *word = read_word(r);
        double v;
        if (!opc_parse_real(word, &v) || !isfinite(v))
            return opc_fail(r->err, OPC_EUSER, "'%s' is not a number; %s takes %d", shown(r), what,
                            count);
        out[i] = v;
    }
    return OPC_OK;
}

static int read_integer(struct reader *r, const char *what, int *out)
{
    if (!opc_parse_int(read_word(r), out))
        return opc_fail(r->err, OPC_EUSER, "'%s' is not a whole number; %s takes one", shown(r),
                        what);
    return OPC_OK;
}

static struct opc_bullet_body *this_body(const struct reader *r)
{
    return &r->robot->body[r->robot->bodies - 1];
}

/* The solid being described, NULL if the body has none yet. */
static struct opc_bullet_shape *this_solid(const struct reader *r)
{
    struct opc_bullet_shape *last = r->robot->shape + r->robot->shapes - 1;
    return r->robot->shapes > 0 && last->body == r->robot->bodies - 1 ? last : NULL;
}

static int start_body(struct reader *r)
{
    struct opc_bullet_robot *robot = r->robot;
    struct opc_bullet_body b = {.parent = -1, .joint = OPC_BULLET_FIXED_BASE};
    if (robot->bodies == OPC_BULLET_BODIES)
        return opc_fail(r->err, OPC_EUSER, "more than %d bodies; raise OPC_BULLET_BODIES",
                        OPC_BULLET_BODIES);
    const int code = read_name(r, "body", b.name);
    if (code)
        return code;
    if (opc_bullet_find_body(robot, b.name) >= 0)
        return opc_fail(r->err, OPC_EUSER, "there is a body '%s' already; choose another name",
                        b.name);
    if (robot->bodies > 0)
        b.joint = OPC_BULLET_WELD;
    robot->body[robot->bodies++] = b;
    return OPC_OK;
}

static int read_base(struct reader *r)
{
    const char *word = read_word(r);
    if (r->robot->bodies != 1)
        return opc_fail(r->err, OPC_EUSER,
                        "body '%s' is not the first; it needs slide, hinge or weld, not base",
                        this_body(r)->name);
    if (strcmp(word, "free") && strcmp(word, "fixed"))
        return opc_fail(r->err, OPC_EUSER, "a base is free or fixed, not '%s'", shown(r));
    this_body(r)->joint = strcmp(word, "free") ? OPC_BULLET_FIXED_BASE : OPC_BULLET_FREE_BASE;
    return OPC_OK;
}

static int read_joint(struct reader *r, enum opc_bullet_joint joint)
{
    struct opc_bullet_body *b = this_body(r);
    char name[OPC_BULLET_WORD] = "";
    if (r->robot->bodies == 1)
        return opc_fail(r->err, OPC_EUSER, "body '%s' comes first; say base fixed or base free",
                        b->name);
    const int code = joint == OPC_BULLET_WELD ? OPC_OK : read_name(r, "joint", name);
    if (code)
        return code;
    if (*name && opc_bullet_find_joint(r->robot, name) >= 0)
        return opc_fail(r->err, OPC_EUSER, "there is a joint '%s' already; choose another name",
                        name);
    memcpy(b->joint_name, name, sizeof name);
    b->joint = joint;
    return OPC_OK;
}

static int read_parent(struct reader *r)
{
    struct opc_bullet_body *b = this_body(r);
    const int parent = opc_bullet_find_body(r->robot, read_word(r));
    if (parent < 0 || parent == r->robot->bodies - 1)
        return opc_fail(r->err, OPC_EUSER, "no body '%s' above body '%s'; parents come first",
                        shown(r), b->name);
    b->parent = parent;
    return OPC_OK;
}

static int read_range(struct reader *r)
{
    struct opc_bullet_body *b = this_body(r);
    double range[2] = {0};
    const int code = read_numbers(r, "range", 2, range);
    if (code)
        return code;
    if (!(range[0] < range[1]))
        return opc_fail(r->err, OPC_EUSER, "range %g %g is empty; the lower end comes first",
                        range[0], range[1]);
    b->limited = true;
    b->lower = range[0];
    b->upper = range[1];
    return OPC_OK;
}

static int read_solid(struct reader *r, enum opc_bullet_solid solid)
{
    struct opc_bullet_robot *robot = r->robot;
    struct opc_bullet_shape s = {.body = robot->bodies - 1, .solid = solid, .turn = {1, 0, 0, 0}};
    const char *what = "a solid (radius, and height for capsule_z)";
    double size[2] = {0};
    if (robot->shapes == OPC_BULLET_SHAPES)
        return opc_fail(r->err, OPC_EUSER, "more than %d solids; raise OPC_BULLET_SHAPES",
                        OPC_BULLET_SHAPES);
    const int code = read_numbers(r, what, solid == OPC_BULLET_CAPSULE_Z ? 2 : 1, size);
    if (code)
        return code;
    if (!(size[0] > 0) || !(size[1] >= 0))
        return opc_fail(r->err, OPC_EUSER, "a solid of radius %g and height %g; above 0 would do",
                        size[0], size[1]);
    s.radius = size[0];
    s.height = size[1];
    robot->shape[robot->shapes++] = s;
    return OPC_OK;
}

static int no_solid(struct reader *r, const char *word)
{
    return opc_fail(r->err, OPC_EUSER,
                    "%s belongs to a solid; name sphere, capsule_z or two_spheres before it", word);
}

static int read_turn_y(struct reader *r)
{
    struct opc_bullet_shape *s = this_solid(r);
    double angle = 0;
    if (!s)
        return no_solid(r, "turn_y");
    const int code = read_numbers(r, "turn_y", 1, &angle);
    if (code)
        return code;
    s->turn[0] = cos(angle / 2);
    s->turn[2] = sin(angle / 2);
    return OPC_OK;
}

static int read_property(struct reader *r)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
        const struct property *p = &properties[i];
        char *to;
        if (strcmp(r->word, p->word))
            continue;
        if (p->of == OF_SOLID && !this_solid(r))
            return no_solid(r, p->word);
        to = p->of == OF_BODY ? (char *)this_body(r) : (char *)this_solid(r);
        if (p->count == 0)
            return read_integer(r, p->word, (int *)(void *)(to + p->offset));
        return read_numbers(r, p->word, p->count, (double *)(void *)(to + p->offset));
    }
    return opc_fail(r->err, OPC_EUSER,
                    "'%s' is not known here; body, base, slide, hinge, weld, on, range, axis, "
                    "pivot, com, mass, inertia, insert, group, mask, friction, sphere, capsule_z, "
                    "two_spheres, from, to, at, turn or turn_y would be",
                    r->word);
}

static int read_item(struct reader *r)
{
    const char *word = r->word;
    if (!strcmp(word, "body"))
        return start_body(r);
    if (r->robot->bodies == 0)
        return opc_fail(r->err, OPC_EUSER, "'%s' stands outside a body; start with body NAME",
                        word);
    if (!strcmp(word, "base"))
        return read_base(r);
    if (!strcmp(word, "slide"))
        return read_joint(r, OPC_BULLET_SLIDE);
    if (!strcmp(word, "hinge"))
        return read_joint(r, OPC_BULLET_HINGE);
    if (!strcmp(word, "weld"))
        return read_joint(r, OPC_BULLET_WELD);
    if (!strcmp(word, "on"))
        return read_parent(r);
    if (!strcmp(word, "range"))
        return read_range(r);
    if (!strcmp(word, "sphere"))
        return read_solid(r, OPC_BULLET_SPHERE);
    if (!strcmp(word, "capsule_z"))
        return read_solid(r, OPC_BULLET_CAPSULE_Z);
    if (!strcmp(word, "two_spheres"))
        return read_solid(r, OPC_BULLET_TWO_SPHERES);
    if (!strcmp(word, "turn_y"))
        return read_turn_y(r);
    return read_property(r);
}

/* What can only be judged once the whole body has been read. */
static int check_body(struct reader *r)
{
    const struct opc_bullet_body *b = this_body(r);
    const bool moves = b->joint == OPC_BULLET_SLIDE || b->joint == OPC_BULLET_HINGE;
    if (r->robot->bodies > 1 && b->parent < 0)
        return opc_fail(r->err, OPC_EUSER, "body '%s' hangs on nothing; add on BODY", b->name);
    if (moves && !(b->axis[0] || b->axis[1] || b->axis[2]))
        return opc_fail(r->err, OPC_EUSER, "joint '%s' has no axis; add axis X Y Z", b->joint_name);
    if (b->limited && !moves)
        return opc_fail(r->err, OPC_EUSER, "body '%s' has a range but no slide or hinge", b->name);
    if (b->mass < 0 || b->inertia[0] < 0 || b->inertia[1] < 0 || b->inertia[2] < 0)
        return opc_fail(r->err, OPC_EUSER,
                        "body '%s' has a negative mass or inertia; 0 or more would do", b->name);
    if (b->joint == OPC_BULLET_FREE_BASE && !(b->mass > 0))
        return opc_fail(r->err, OPC_EUSER, "free base '%s' weighs nothing; add mass and inertia",
                        b->name);
    for (int i = 0; i < r->robot->shapes; i++) {
        const struct opc_bullet_shape *s = &r->robot->shape[i];
        if (s->turn[0] == 0 && s->turn[1] == 0 && s->turn[2] == 0 && s->turn[3] == 0)
            return opc_fail(r->err, OPC_EUSER,
                            "turn 0 0 0 0 is no rotation; 1 0 0 0 is none at all");
    }
    return OPC_OK;
}

static int read_all(struct reader *r)
{
    int code = OPC_OK;
    while (!code && *read_word(r)) {
        if (r->robot->bodies > 0 && !strcmp(r->word, "body"))
            code = check_body(r);
        if (!code)
            code = read_item(r);
    }
    if (code)
        return code;
    if (r->robot->bodies == 0)
        return opc_fail(r->err, OPC_EUSER, "no robot here; start with body NAME");
    return check_body(r);
}

int opc_bullet_robot_parse(const char *text, const char *where, struct opc_bullet_robot *out,
                           struct opc_err *err)
{
    struct reader r = {.next = text, .line = 1, .robot = out, .err = err};
    memset(out, 0, sizeof *out);
    const int code = read_all(&r);
    if (code)
        opc_within(err, "%s:%d", where, r.line);
    return code;
}

int opc_bullet_find_body(const struct opc_bullet_robot *robot, const char *name)
{
    for (int i = 0; i < robot->bodies; i++)
        if (!strcmp(robot->body[i].name, name))
            return i;
    return -1;
}

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
