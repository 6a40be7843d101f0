/* SPDX-License-Identifier: MIT */
/* env/bullet/model.h - a robot, read from a .robot file.
 *
 * A file is words separated by blanks and line ends; # starts a comment. Each body is
 *
 *     body NAME
 *         base fixed | base free                   the first body, and only it
 *         slide JOINT | hinge JOINT | weld         all others, with
 *         on BODY                                  the parent, described further up
 *         axis X Y Z          0 0 0                of a slide or hinge, needed there
 *         range LOWER UPPER   unlimited
 *         pivot X Y Z         0 0 0                from the parent's centre of mass
 *         com X Y Z           0 0 0                from the pivot
 *         mass M              0                    pivots that only carry a joint have none
 *         inertia X Y Z       0 0 0
 *         insert X Y Z        0 0 0                where a free base starts; for other bodies it
 *                                                  only decides the order of contacts
 *         group G mask M      0 0                  collide if one's group meets the other's mask
 *         friction F          0
 *
 * followed by any number of solids
 *
 *         sphere RADIUS
 *         capsule_z RADIUS HEIGHT
 *         two_spheres RADIUS from X Y Z to X Y Z
 *         at X Y Z            0 0 0                of the solid just named, from the centre of mass
 *         turn W X Y Z | turn_y ANGLE              unturned
 *
 * in the order in which the engine gets them. A value that is not given is that of the middle
 * column. Units are SI and rad. */
#ifndef OPC_ENV_BULLET_MODEL_H
#define OPC_ENV_BULLET_MODEL_H

#include "env/bullet/shim.h"
#include "opc/err.h"

/* Reads `text`; `where` is its name in messages. */
int opc_bullet_robot_parse(const char *text, const char *where, struct opc_bullet_robot *out,
                           struct opc_err *err);

/* Index of the body or of the joint (counting slides and hinges only); -1 if there is none. */
int opc_bullet_find_body(const struct opc_bullet_robot *, const char *name);
int opc_bullet_find_joint(const struct opc_bullet_robot *, const char *name);
/* The body that joint `j` moves; -1 if the robot has no such joint. */
int opc_bullet_joint_body(const struct opc_bullet_robot *, int j);

#endif
