/* SPDX-License-Identifier: MIT */
/* env/bullet/tasks.h - the Bullet tasks over plain numbers: no engine appears here.
 *
 * Two flavours run on the same robots. Plain names are pybullet-gym's "MuJoCo" classes (observation
 * and reward laid out as in gym's MuJoCo tasks); names in _rs are its ports of RoboSchool (relative
 * observations, contact flags, electricity costs). They behave as the originals do from their
 * second episode on; the first one after construction has artefacts nobody trains on. */
#ifndef OPC_ENV_BULLET_TASKS_H
#define OPC_ENV_BULLET_TASKS_H

#include "env/bullet/shim.h"
#include "opc/env.h"

enum {
    OPC_BULLET_JOINTS = 9,
    OPC_BULLET_DRIVES = 8,
    OPC_BULLET_FEET = 6,
    OPC_BULLET_OBS = 111,
};

/* A robot that tasks are made for: its file and its actuators, in the order of actions. */
struct opc_bullet_robot_spec {
    const char *file;  /* of the robot, below models/ */
    const char *torso; /* name of the body that tasks observe */
    bool free_base;
    int joints; /* number of joints the file must describe */
    int act;
    struct {
        const char *joint;
        double max; /* N or N m at action 1 */
    } drive[OPC_BULLET_DRIVES];
};

/* What a task sees of its robot after the last reset or step. */
struct opc_bullet_sight {
    const struct opc_bullet_task *task;
    int drive[OPC_BULLET_DRIVES];                              /* joint of each action */
    double lower[OPC_BULLET_DRIVES], upper[OPC_BULLET_DRIVES]; /* its range */
    double own_height; /* of the torso when all joints are at 0 */
    double q[OPC_BULLET_JOINTS], qd[OPC_BULLET_JOINTS];
    /* Of the torso. Unless the base is free, position and quaternion (x, y, z, w) lag by a substep,
     * and the tasks read them so, as the originals do. */
    double position[3], quaternion[4];
    /* Only for tasks that look around: */
    double linear[3], angular[3];  /* of the torso */
    double centre[2];              /* mean x and y of all bodies and the floor, lagging */
    bool touched[OPC_BULLET_FEET]; /* contact flags, one step old as in the originals */
    /* Kept by begin and reward from one step to the next. */
    double x, potential; /* progress so far: of the torso, of the centre */
};

struct opc_bullet_task {
    struct opc_env_page page;
    const struct opc_bullet_robot_spec *robot;
    struct opc_bullet_setting setting;
    int obs;
    double strength;     /* factor on `max` of each drive */
    int shake_from;      /* reset adds noise to this joint and all after it */
    bool single;         /* forces and joint states pass through float, as in RoboSchool itself */
    bool around;         /* needs the torso's velocities and the centre */
    double max_speed;    /* joint velocities are clipped to this before they are observed */
    double alive_bonus;  /* per step */
    double control_cost; /* per squared action */
    const char *feet[OPC_BULLET_FEET]; /* bodies with a contact flag; NULL ends the list */
    const struct opc_env_angle *angles;
    int n_angles;
    const struct opc_bullet_task *roboschool; /* the task of constants=roboschool, or NULL */

    void (*observe)(const struct opc_bullet_sight *, double *obs);
    double (*reward)(struct opc_bullet_sight *, const double *action, bool ended);
    /* Whether a state ends the task, from its finite observation alone. NULL: no state does. */
    bool (*ended)(const double *obs);
    /* The same asked of the simulation, where that knows more; NULL: ask the observation. */
    bool (*ended_here)(const struct opc_bullet_sight *);
};

extern const struct opc_bullet_task opc_bullet_inverted_pendulum, opc_bullet_inverted_pendulum_rs,
    opc_bullet_hopper, opc_bullet_hopper_rs, opc_bullet_walker2d, opc_bullet_walker2d_rs,
    opc_bullet_half_cheetah, opc_bullet_half_cheetah_rs, opc_bullet_ant,
    opc_bullet_ant_truncated_obs, opc_bullet_ant_rs;

/* Starts an episode; the sight is already that of its first state. */
void opc_bullet_begin(struct opc_bullet_sight *);
/* Mean as numpy computes it, to the bit. */
double opc_bullet_mean(int n, const double *x);
/* x rounded to float and back. */
double opc_bullet_rounded(double x);
double opc_bullet_clipped(double x, double max); /* to [-max, max] */

#endif
