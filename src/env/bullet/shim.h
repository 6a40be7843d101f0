/* SPDX-License-Identifier: MIT */
/* env/bullet/shim.h - one articulated robot on an optional floor, simulated by Bullet in double
 * precision; shim.cpp is the only file that includes its headers.
 *
 * It follows what PyBullet does so closely that its trajectories are reproduced bit for bit.
 * Contacts make these robots chaotic, so the order in which bodies, limits and motors are handed to
 * the engine is part of the contract: the order of the `body` array.
 *
 * A world belongs to one thread at a time; different worlds may be used by different threads. The
 * first one sets two of Bullet's process-wide settings: gDbvtMargin = 0, and an allocator that
 * throws where Bullet's own returns NULL. */
#ifndef OPC_ENV_BULLET_SHIM_H
#define OPC_ENV_BULLET_SHIM_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version this was compiled with; NULL in a build without Bullet. */
#if OPC_WITH_BULLET
const char *opc_bullet_version(void);
#else
static inline const char *opc_bullet_version(void)
{
    return NULL;
}
#endif

enum {
    OPC_BULLET_BODIES = 32, /* the largest robot we have, the ant, has 21 */
    OPC_BULLET_SHAPES = 32,
    OPC_BULLET_WORD = 32, /* a name and its final zero */
};

enum opc_bullet_joint {
    OPC_BULLET_FIXED_BASE, /* body 0 only */
    OPC_BULLET_FREE_BASE,  /* body 0 only */
    OPC_BULLET_SLIDE,
    OPC_BULLET_HINGE,
    OPC_BULLET_WELD, /* no freedom */
};

enum opc_bullet_solid {
    OPC_BULLET_SPHERE,
    OPC_BULLET_TWO_SPHERES, /* hull of two equal spheres around `from` and `to` */
    OPC_BULLET_CAPSULE_Z,
};

/* One body and the joint that hangs it on its parent. Frames have the same orientation while all
 * joints are at 0. SI units. */
struct opc_bullet_body {
    char name[OPC_BULLET_WORD], joint_name[OPC_BULLET_WORD]; /* the engine does not need them */
    enum opc_bullet_joint joint;
    int parent;      /* an index below its own; unused for body 0 */
    double axis[3];  /* used as given: the ant's ankles are not of unit length */
    double pivot[3]; /* from the parent's centre of mass */
    double com[3];   /* from the pivot to the centre of mass */
    double mass;     /* 0 for a pivot that only carries a joint */
    double inertia[3];
    bool limited;
    double lower, upper;
    double insert[3]; /* where its collider enters the world: decides the order of contacts only */
    int group, mask;  /* two bodies collide if either one's group meets the other's mask */
    double friction;
};

/* One solid of a body. */
struct opc_bullet_shape {
    int body;
    enum opc_bullet_solid solid;
    double radius, height; /* height of a capsule's cylinder */
    double from[3], to[3];
    double at[3];   /* in the frame of the body's centre of mass */
    double turn[4]; /* w, x, y, z; need not have unit length */
};

struct opc_bullet_robot {
    int bodies, shapes;
    struct opc_bullet_body body[OPC_BULLET_BODIES];   /* body 0 is the base */
    struct opc_bullet_shape shape[OPC_BULLET_SHAPES]; /* in order of their bodies */
};

/* The world around the robot. */
struct opc_bullet_setting {
    double gravity; /* downwards, m/s^2 */
    double step;    /* s, one call of opc_bullet_step */
    int substeps;   /* a power of two, so that step / substeps has no rounding */
    bool floor;     /* the plane z = 0 */
    double floor_friction;
    double floor_roll; /* rolling and spinning friction */
};

struct opc_bullet; /* opaque */

/* The robot stands at rest with all joints at 0. NULL: out of memory. The description is copied. */
struct opc_bullet *opc_bullet_create(const struct opc_bullet_robot *,
                                     const struct opc_bullet_setting *);
void opc_bullet_destroy(struct opc_bullet *); /* NULL is fine */

/* Starts from the given joint positions and velocities; joints are slides and hinges, in body
 * order. A free base is put at `insert`, upright and at rest. What follows does not depend on what
 * went before, not in one bit. Returns 0, or -1 when out of memory; then the world cannot be used
 * any more, and its memory stays taken, because Bullet cannot clean up after that. */
int opc_bullet_reset(struct opc_bullet *, const double *q, const double *qd);

/* force[joints] in N or N m, held through all substeps. Returns as reset does. */
int opc_bullet_step(struct opc_bullet *, const double *force);

void opc_bullet_state(const struct opc_bullet *, double *q, double *qd); /* [joints] each */

/* Centre of mass and quaternion x, y, z, w in the world. Except for a free base this is the pose at
 * the start of the last substep, not its end, because that is what the original tasks observe.
 * quaternion may be NULL. */
void opc_bullet_pose(const struct opc_bullet *, int body, double position[3], double quaternion[4]);

/* Current velocities of the centre of mass, rotated into the world by the pose above. */
void opc_bullet_velocity(struct opc_bullet *, int body, double linear[3], double angular[3]);

/* Whether the engine holds a contact point between body and floor; they may be up to 2 cm apart. */
bool opc_bullet_touches(const struct opc_bullet *, int body);

/* Mass and inertia that the engine works with. For tests: compilers have been seen to change it. */
void opc_bullet_mass(const struct opc_bullet *, int body, double *mass, double inertia[3]);

#ifdef __cplusplus
}
#endif
#endif
