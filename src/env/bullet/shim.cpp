/* SPDX-License-Identifier: MIT */
/* The project's only C++: calls into Bullet, and nothing a C file could do. bullet.c is its one
 * user.
 *
 * Invariant: everything below happens in the order in which PyBullet does it. With five solver
 * iterations the order of constraints and contacts is visible in the result, so moving a line
 * changes trajectories even where the mechanics stay the same; tests/test_env_bullet.c notices. */
#include "env/bullet/shim.h"

extern "C" {
#include "base/fault.h"
}

#include <btBulletDynamicsCommon.h>

#include <BulletCollision/CollisionShapes/btMultiSphereShape.h>
#include <BulletDynamics/Featherstone/btMultiBody.h>
#include <BulletDynamics/Featherstone/btMultiBodyConstraintSolver.h>
#include <BulletDynamics/Featherstone/btMultiBodyDynamicsWorld.h>
#include <BulletDynamics/Featherstone/btMultiBodyJointLimitConstraint.h>
#include <BulletDynamics/Featherstone/btMultiBodyJointMotor.h>
#include <BulletDynamics/Featherstone/btMultiBodyLinkCollider.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

static_assert(sizeof(btScalar) == 8, "take the compiler flags from pkg-config bullet-float64");

namespace
{

/* PyBullet's rule for collisions: one of the two conditions is enough. Bullet's own rule asks for
 * both; with it the robots fall through the floor. */
struct either_way : btOverlapFilterCallback {
    bool needBroadphaseCollision(btBroadphaseProxy *a, btBroadphaseProxy *b) const override
    {
        return (a->m_collisionFilterGroup & b->m_collisionFilterMask) ||
               (b->m_collisionFilterGroup & a->m_collisionFilterMask);
    }
};

/* Bullet does not check what its allocator returns, so this throws instead of returning NULL. The
 * exception leaves containers half changed: a world that ran out of memory is never touched again.
 */
void *take(size_t size)
{
    void *block = opc_fault_hits_alloc() ? nullptr : std::malloc(size);
    if (!block)
        throw std::bad_alloc();
    return block;
}

/* Bullet's process-wide settings; C++ runs this once, whichever thread comes first. */
void prepare_library()
{
    static const bool done = [] {
        gDbvtMargin = 0; /* as in PyBullet; it decides which pairs arise first */
        btAlignedAllocSetCustom(take, std::free);
        return true;
    }();
    (void)done;
}

/* Pools for the few contacts one robot can have (more is allocated when needed). The default, 4096
 * of each, is 7 MB and most of the time it takes to make a world. */
btDefaultCollisionConstructionInfo small_pools()
{
    btDefaultCollisionConstructionInfo info;
    info.m_defaultMaxPersistentManifoldPoolSize = 128;
    info.m_defaultMaxCollisionAlgorithmPoolSize = 512;
    return info;
}

btVector3 vector(const double v[3])
{
    return btVector3(v[0], v[1], v[2]);
}

btTransform translation(const double v[3])
{
    return btTransform(btQuaternion::getIdentity(), vector(v));
}

void copy(const btVector3 &from, double to[3])
{
    for (int i = 0; i < 3; i++)
        to[i] = from[i];
}

} // namespace

const char *opc_bullet_version(void)
{
    constexpr int v = BT_BULLET_VERSION; /* 324 is 3.24 */
    static constexpr char text[] = {'0' + v / 100, '.', '0' + v / 10 % 10, '0' + v % 10, '\0'};
    return text;
}

struct opc_bullet {
    explicit opc_bullet(const opc_bullet_robot &r, const opc_bullet_setting &s);

    const opc_bullet_robot robot;
    const opc_bullet_setting setting;
    bool broken = false;    /* ran out of memory: no call may touch it again */
    std::vector<int> joint; /* link of each joint; link i is body i + 1, the base is -1 */

    /* Declared before the world, because its destructor visits them and members are destroyed in
     * reverse order. */
    std::vector<std::unique_ptr<btCollisionShape>> shapes;
    std::unique_ptr<btMultiBody> multibody;
    std::vector<std::unique_ptr<btMultiBodyConstraint>> constraints;
    std::vector<std::unique_ptr<btMultiBodyLinkCollider>> colliders; /* [bodies] */
    btStaticPlaneShape plane{btVector3(0, 0, 1), 0};
    btRigidBody floor{0, nullptr, &plane};

    either_way filter;
    btDefaultCollisionConfiguration configuration{small_pools()};
    btCollisionDispatcher dispatcher{&configuration};
    btHashedOverlappingPairCache pairs;
    btDbvtBroadphase broadphase{&pairs};
    btMultiBodyConstraintSolver solver;
    btMultiBodyDynamicsWorld world{&dispatcher, &broadphase, &solver, &configuration};

    btAlignedObjectArray<btQuaternion> scratch_rotation;
    btAlignedObjectArray<btVector3> scratch_origin;
    btAlignedObjectArray<btVector3> angular, linear; /* [bodies] */

    void set_up_solver();
    void set_up_links();
    void set_up_link(int i);
    btCollisionShape *new_solid(const opc_bullet_shape &s);
    btCollisionShape *new_shape(int body);
    void set_up_colliders();
    void set_up_motors();
    void constrain(std::unique_ptr<btMultiBodyConstraint> c);

    void insert_all();
    void place_base();
    void refresh();
    void reset(const double *q, const double *qd);
    void step(const double *force);
};

opc_bullet::opc_bullet(const opc_bullet_robot &r, const opc_bullet_setting &s)
    : robot(r), setting(s)
{
    /* The order of these calls is part of the contract; see the top. */
    pairs.setOverlapFilterCallback(&filter);
    set_up_solver();
    /* The floor is made in any case and enters the world only if the setting has one. */
    floor.setFriction(s.floor_friction);
    floor.setRollingFriction(s.floor_roll);
    floor.setSpinningFriction(s.floor_roll);
    set_up_links();
    set_up_colliders();
    multibody->setHasSelfCollision(true);
    multibody->finalizeMultiDof();
    refresh();
    world.addMultiBody(multibody.get());
    set_up_motors();
    angular.resize(r.bodies);
    linear.resize(r.bodies);
}

void opc_bullet::set_up_solver()
{
    btContactSolverInfo &info = world.getSolverInfo();
    /* PyBullet's settings for these tasks. */
    info.m_numIterations = 5;
    info.m_erp2 = 0.9;
    info.m_linearSlop = 1e-5;
    info.m_leastSquaresResidualThreshold = 1e-7;
    world.setGravity(btVector3(0, 0, -setting.gravity));
}

/* The world uses the constraint, we own it; both lists have the order of the calls. */
void opc_bullet::constrain(std::unique_ptr<btMultiBodyConstraint> c)
{
    world.addMultiBodyConstraint(c.get());
    constraints.push_back(std::move(c));
}

void opc_bullet::set_up_links()
{
    const opc_bullet_body &base = robot.body[0];
    const bool fixed = base.joint == OPC_BULLET_FIXED_BASE;
    multibody = std::make_unique<btMultiBody>(robot.bodies - 1, base.mass, vector(base.inertia),
                                              fixed, false /* never sleeps */);
    multibody->setBaseWorldTransform(translation(base.insert));
    for (int i = 0; i < robot.bodies - 1; i++)
        set_up_link(i);
}

/* Adds body i + 1 as link i, with its joint, and the limit of the joint right after it. */
void opc_bullet::set_up_link(int i)
{
    const opc_bullet_body &b = robot.body[i + 1];
    const btQuaternion same = btQuaternion::getIdentity();
    const btVector3 inertia = vector(b.inertia), axis = vector(b.axis);
    const btVector3 pivot = vector(b.pivot), com = vector(b.com);
    const int parent = b.parent - 1;

    /* Link i is body i + 1. The last argument switches off collisions with the parent. */
    if (b.joint == OPC_BULLET_SLIDE)
        multibody->setupPrismatic(i, b.mass, inertia, parent, same, axis, pivot, com, true);
    else if (b.joint == OPC_BULLET_HINGE)
        multibody->setupRevolute(i, b.mass, inertia, parent, same, axis, pivot, com, true);
    else
        multibody->setupFixed(i, b.mass, inertia, parent, same, pivot, com);
    if (b.joint == OPC_BULLET_WELD)
        return;
    joint.push_back(i);
    if (b.limited)
        constrain(std::make_unique<btMultiBodyJointLimitConstraint>(multibody.get(), i, b.lower,
                                                                    b.upper));
}

/* Bullet has no capsule between two arbitrary points; the hull of two spheres is one. */
btCollisionShape *opc_bullet::new_solid(const opc_bullet_shape &s)
{
    const btVector3 ends[2] = {vector(s.from), vector(s.to)};
    const btScalar radii[2] = {s.radius, s.radius};

    if (s.solid == OPC_BULLET_SPHERE)
        shapes.push_back(std::make_unique<btSphereShape>(s.radius));
    else if (s.solid == OPC_BULLET_TWO_SPHERES)
        shapes.push_back(std::make_unique<btMultiSphereShape>(ends, radii, 2));
    else
        shapes.push_back(std::make_unique<btCapsuleShapeZ>(s.radius, s.height));
    return shapes.back().get();
}

/* The shape of a body. A pivot without solids gets an empty compound, because without a collider
 * its joint limit belongs to no island of the solver and silently does nothing. A single solid that
 * is not moved is used without a compound, as PyBullet does. */
btCollisionShape *opc_bullet::new_shape(int body)
{
    btTransform in_place = btTransform::getIdentity();
    btCollisionShape *only = nullptr;
    auto owned = std::make_unique<btCompoundShape>();
    btCompoundShape *all = owned.get();

    shapes.push_back(std::move(owned));
    for (int i = 0; i < robot.shapes; i++) {
        const opc_bullet_shape &s = robot.shape[i];
        if (s.body != body)
            continue;
        /* From quaternion to matrix without normalising: the pendulum's has length 0.99985. */
        btTransform at(btQuaternion(s.turn[1], s.turn[2], s.turn[3], s.turn[0]), vector(s.at));
        only = new_solid(s);
        all->addChildShape(at, only);
        in_place = at;
    }
    if (all->getNumChildShapes() == 1 && in_place == btTransform::getIdentity())
        return only;
    return all;
}

/* One collider for each body, in body order; a fixed base is static. */
void opc_bullet::set_up_colliders()
{
    for (int i = 0; i < robot.bodies; i++) {
        const int link = i - 1;
        colliders.push_back(std::make_unique<btMultiBodyLinkCollider>(multibody.get(), link));
        btMultiBodyLinkCollider *c = colliders.back().get();
        c->setCollisionShape(new_shape(i));
        c->setFriction(robot.body[i].friction);
        if (link >= 0) {
            multibody->getLink(link).m_collider = c;
            multibody->getLink(link).m_flags |= BT_MULTIBODYLINKFLAGS_DISABLE_ALL_PARENT_COLLISION;
            continue;
        }
        multibody->setBaseCollider(c);
        if (robot.body[0].joint == OPC_BULLET_FIXED_BASE)
            c->setCollisionFlags(c->getCollisionFlags() | btCollisionObject::CF_STATIC_OBJECT);
    }
}

/* PyBullet gives every joint a motor of force 0. It moves nothing, but the solver visits joint
 * limits in another order when it is there: 0.12 rad/s in the first step of the walker. */
void opc_bullet::set_up_motors()
{
    for (int link : joint)
        constrain(std::make_unique<btMultiBodyJointMotor>(multibody.get(), link, 0, 0));
}

/* Takes everything out of the world and puts it back as if the world were new. Contacts are solved
 * in the order in which their pairs arose, so that order must not survive an episode. */
void opc_bullet::insert_all()
{
    /* From the end, which leaves the array as it is for the others. */
    while (world.getNumCollisionObjects() > 0)
        world.removeCollisionObject(
            world.getCollisionObjectArray()[world.getNumCollisionObjects() - 1]);
    broadphase.resetPool(&dispatcher);
    if (setting.floor)
        world.addRigidBody(&floor, 2, -3);
    for (int i = 0; i < robot.bodies; i++) {
        const opc_bullet_body &b = robot.body[i];
        colliders[i]->setWorldTransform(translation(b.insert));
        world.addCollisionObject(colliders[i].get(), b.group, b.mask);
    }
}

/* Upright and at rest, where the file says. */
void opc_bullet::place_base()
{
    multibody->setBaseWorldTransform(translation(robot.body[0].insert));
    multibody->setBaseVel(btVector3(0, 0, 0));
    multibody->setBaseOmega(btVector3(0, 0, 0));
}

/* Poses of all links and colliders from the joint positions. */
void opc_bullet::refresh()
{
    multibody->forwardKinematics(scratch_rotation, scratch_origin);
    multibody->updateCollisionObjectWorldTransforms(scratch_rotation, scratch_origin);
}

void opc_bullet::reset(const double *q, const double *qd)
{
    insert_all();
    if (robot.body[0].joint == OPC_BULLET_FREE_BASE)
        place_base();
    /* PyBullet refreshes after every joint. That looks wasteful, but decides the order of pairs. */
    for (size_t j = 0; j < joint.size(); j++) {
        multibody->setJointPos(joint[j], q[j]);
        multibody->setJointVel(joint[j], qd[j]);
        refresh();
        for (auto &c : colliders)
            world.updateSingleAabb(c.get());
    }
}

void opc_bullet::step(const double *force)
{
    for (size_t j = 0; j < joint.size(); j++)
        multibody->addJointTorqueMultiDof(joint[j], 0, force[j]);
    /* One call for all substeps: the engine clears the forces at its end, not after each of them.
     */
    world.stepSimulation(setting.step, setting.substeps, setting.step / setting.substeps);
}

/* Runs a call that may throw; no exception may pass into C. */
template <typename work> static int guarded(struct opc_bullet *b, work call)
{
    if (b->broken)
        return -1;
    try {
        call();
        return 0;
    } catch (...) {
        b->broken = true;
        return -1;
    }
}

/* The world that is returned has been reset to joints at 0, so it can be looked at. */
struct opc_bullet *opc_bullet_create(const struct opc_bullet_robot *robot,
                                     const struct opc_bullet_setting *setting)
{
    const double zero[OPC_BULLET_BODIES] = {0};
    opc_bullet *b;

    prepare_library();
    try {
        b = new opc_bullet(*robot, *setting);
    } catch (...) {
        return nullptr;
    }
    if (opc_bullet_reset(b, zero, zero))
        return nullptr; /* its memory is lost: a broken world cannot be destroyed */
    return b;
}

/* A broken world stays allocated: its destructors would visit half-changed containers. */
void opc_bullet_destroy(struct opc_bullet *b)
{
    if (b && !b->broken)
        delete b;
}

int opc_bullet_reset(struct opc_bullet *b, const double *q, const double *qd)
{
    return guarded(b, [=] { b->reset(q, qd); });
}

int opc_bullet_step(struct opc_bullet *b, const double *force)
{
    return guarded(b, [=] { b->step(force); });
}

void opc_bullet_state(const struct opc_bullet *b, double *q, double *qd)
{
    for (size_t j = 0; j < b->joint.size(); j++) {
        q[j] = b->multibody->getJointPos(b->joint[j]);
        qd[j] = b->multibody->getJointVel(b->joint[j]);
    }
}

/* m_cachedWorldTransform is that of the last refresh or substep, which is the lag that shim.h
 * speaks of. */
void opc_bullet_pose(const struct opc_bullet *b, int body, double position[3], double quaternion[4])
{
    const btTransform at = body == 0 ? b->multibody->getBaseWorldTransform()
                                     : b->multibody->getLink(body - 1).m_cachedWorldTransform;

    copy(at.getOrigin(), position);
    if (!quaternion)
        return;
    const btQuaternion turn = at.getRotation();
    for (int i = 0; i < 4; i++)
        quaternion[i] = turn[i];
}

void opc_bullet_velocity(struct opc_bullet *b, int body, double linear[3], double angular[3])
{
    if (body == 0) {
        copy(b->multibody->getBaseVel(), linear);
        copy(b->multibody->getBaseOmega(), angular);
        return;
    }
    /* Velocities come in the frame of each link and are rotated into the world. Index 0 is the
     * base. */
    b->multibody->compTreeLinkVelocities(&b->angular[0], &b->linear[0]);
    const btMatrix3x3 &turn = b->multibody->getLink(body - 1).m_cachedWorldTransform.getBasis();
    copy(turn * b->linear[body], linear);
    copy(turn * b->angular[body], angular);
}

/* Either body may come first in a manifold. */
bool opc_bullet_touches(const struct opc_bullet *b, int body)
{
    const btCollisionObject *foot = b->colliders[body].get(), *floor = &b->floor;

    for (int i = 0; i < b->dispatcher.getNumManifolds(); i++) {
        const btPersistentManifold *m = b->dispatcher.getManifoldByIndexInternal(i);
        const btCollisionObject *one = m->getBody0(), *two = m->getBody1();
        if (((one == foot && two == floor) || (one == floor && two == foot)) &&
            m->getNumContacts() > 0)
            return true;
    }
    return false;
}

void opc_bullet_mass(const struct opc_bullet *b, int body, double *mass, double inertia[3])
{
    *mass = body == 0 ? b->multibody->getBaseMass() : b->multibody->getLinkMass(body - 1);
    copy(body == 0 ? b->multibody->getBaseInertia() : b->multibody->getLinkInertia(body - 1),
         inertia);
}
