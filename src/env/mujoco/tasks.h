/* SPDX-License-Identifier: MIT */
/* env/mujoco/tasks.h - the MuJoCo tasks over plain arrays: no engine type appears here.
 *
 * The arrays keep the engine's names. What a step leaves in them is not one moment: only qpos and
 * qvel are those of the new state; everything derived (xpos, xipos, site_xpos, forces) still
 * belongs to the engine's last evaluation, a little earlier. The tasks read them as they are, as
 * the originals do; recomputing would change rewards by up to 0.03. */
#ifndef OPC_ENV_MUJOCO_TASKS_H
#define OPC_ENV_MUJOCO_TASKS_H

#include "opc/env.h"

/* What a task sees of the simulation. */
struct opc_world {
    int nq, nv, nu, nbody;
    double timestep, dt;                    /* of the engine; of an environment step */
    const double *body_mass;                /* [nbody] */
    const double *qpos, *qvel;              /* [nq] [nv] */
    const double *xpos, *xipos, *site_xpos; /* [nbody][3] [nbody][3] [nsite][3] lagging */
    const double *qfrc_constraint;          /* [nv] lagging */
    const double *qfrc_actuator;            /* [nv] lagging */
    const double *cinert, *cvel;            /* [nbody][10] [nbody][6] lagging */
    const double *cfrc_ext; /* [nbody][6] torque, force; 0 unless the argument contact is on */
};

struct opc_mujoco_task {
    struct opc_env_page page;
    const char *model;            /* file below models/ */
    int nq, nv, nu, nbody, nsite; /* that the file must describe */
    int obs, frame_skip, steps;
    double qpos_noise; /* uniform in +- this */
    double qvel_noise; /* uniform in +- this, or the standard deviation */
    bool normal_qvel;
    const struct opc_env_angle *angles;
    int n_angles;

    void (*observe)(const struct opc_world *, double *o);
    /* before is what `progress` returned when the step began, 0 without one. */
    double (*reward)(const struct opc_world *, const double *action, double before);

    /* Optional. What `reward` wants to know of the state before the step: a position, whose change
     * is a velocity, or a distance. NULL: nothing. */
    double (*progress)(const struct opc_world *);
    /* Whether the state ends the task. NULL: no state does. */
    bool (*terminated)(const struct opc_world *);
    /* The same of an imagined observation. NULL: no state ends the task. */
    bool (*ended)(const float *o);
    /* Reward of an imagined transition. NULL: no formula is known; a model has to learn it. */
    float (*known_reward)(const float *s, const double *action);
    /* Changes the start further, after the noise. NULL: the noise is all. */
    void (*place)(struct opc_rng *, double *qpos, double *qvel);
};

extern const struct opc_mujoco_task opc_mujoco_inverted_pendulum,
    opc_mujoco_inverted_double_pendulum, opc_mujoco_hopper, opc_mujoco_walker2d,
    opc_mujoco_half_cheetah, opc_mujoco_ant, opc_mujoco_ant_truncated_obs, opc_mujoco_swimmer,
    opc_mujoco_reacher, opc_mujoco_humanoid, opc_mujoco_humanoid_truncated_obs;

/* Height of the double pendulum's tip above where its task ends, from an observation. */
double opc_double_pendulum_height(const float *o);

#endif
