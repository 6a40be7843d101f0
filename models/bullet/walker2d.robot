# SPDX-License-Identifier: MIT
# walker2d.robot - two legs in the x-z plane.
#
# Read by src/env/bullet/model.c; its header describes the words. Bodies come in the order the solver
# sees them; each joint is a massless pivot and the limb is welded to it, because the recorded
# trajectories were made that way. m, kg, kg m^2, rad. Digits beyond the seventh are not noise:
# most numbers are decimal fractions rounded to float, and exact traces need those very values.

body world_anchor
    base fixed
    group 2 mask -3 friction 0.5

body ignorex_pivot
    slide ignorex on world_anchor axis 1 0 0
    group 1 mask -1 friction 0.5

body ignorez_pivot
    slide ignorez on ignorex_pivot axis 0 0 1
    group 1 mask -1 friction 0.5

body ignorey_pivot
    hinge ignorey on ignorez_pivot axis 0 1 0
    group 1 mask -1 friction 0.5

body torso
    weld on ignorey_pivot
    com 0 0 1.25
    mass 3.6651922952356188
    inertia 0.11264361102090639 0.11264361102090639 0.019792038721966075
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.05000000074505806
        from 0 0 1.4500000476837158 to 0 0 1.0499999523162842
        at 0 0 -1.25

body thigh_joint_pivot
    hinge thigh_joint on torso axis 0 -1 0
    range -2.6179940700531006 0
    pivot 0 0 -0.20000004768371582
    group 1 mask -1 friction 0.5

body thigh
    weld on thigh_joint_pivot
    pivot 0 0 -1.0499999523162842
    com 0 0 0.82499998807907104
    mass 4.0578900778630489
    inertia 0.14517098787635424 0.14517098787635424 0.021912606783264114
    insert 0 0 -1.0499999523162842
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.05000000074505806
        from 0 0 1.0499999523162842 to 0 0 0.60000002384185791
        at 0 0 -0.82499998807907104

body leg_joint_pivot
    hinge leg_joint on thigh axis 0 -1 0
    range -2.6179940700531006 0
    pivot 0 0 -0.22499996423721313
    insert 0 0 -1.0499999523162842
    group 1 mask -1 friction 0.5

body leg
    weld on leg_joint_pivot
    pivot 0 0 -0.60000002384185791
    com 0 0 0.35000001266598701
    mass 2.7813566780018228
    inertia 0.10689681448332983 0.10689681448332983 0.011867121560890273
    insert 0 0 -1.6499999761581421
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.039999999105930328
        from 0 0 0.60000002384185791 to 0 0 0.10000000149011612
        at 0 0 -0.35000001266598701

body foot_joint_pivot
    hinge foot_joint on leg axis 0 -1 0
    range -0.78539818525314331 0.78539818525314331
    pivot 0 0 -0.2500000111758709
    insert 0 0 -1.6499999761581421
    group 1 mask -1 friction 0.5

body foot
    weld on foot_joint_pivot
    pivot 0 0 -0.10000000149011612
    com 0.10000000149011612 0 0.10000000149011612
    mass 3.1667252667371084
    inertia 0.021111501211992789 0.052778754225408356 0.052778754225408356
    insert 0 0 -1.7499999776482582
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.059999998658895493
        from 0 0 0.10000000149011612 to 0.20000000298023224 0 0.10000000149011612
        at -0.10000000149011612 0 -0.10000000149011612

body thigh_left_joint_pivot
    hinge thigh_left_joint on torso axis 0 -1 0
    range -2.6179940700531006 0
    pivot 0 0 -0.20000004768371582
    group 1 mask -1 friction 0.5

body thigh_left
    weld on thigh_left_joint_pivot
    pivot 0 0 -1.0499999523162842
    com 0 0 0.82499998807907104
    mass 4.0578900778630489
    inertia 0.14517098787635424 0.14517098787635424 0.021912606783264114
    insert 0 0 -1.0499999523162842
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.05000000074505806
        from 0 0 1.0499999523162842 to 0 0 0.60000002384185791
        at 0 0 -0.82499998807907104

body leg_left_joint_pivot
    hinge leg_left_joint on thigh_left axis 0 -1 0
    range -2.6179940700531006 0
    pivot 0 0 -0.22499996423721313
    insert 0 0 -1.0499999523162842
    group 1 mask -1 friction 0.5

body leg_left
    weld on leg_left_joint_pivot
    pivot 0 0 -0.60000002384185791
    com 0 0 0.35000001266598701
    mass 2.7813566780018228
    inertia 0.10689681448332983 0.10689681448332983 0.011867121560890273
    insert 0 0 -1.6499999761581421
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.039999999105930328
        from 0 0 0.60000002384185791 to 0 0 0.10000000149011612
        at 0 0 -0.35000001266598701

body foot_left_joint_pivot
    hinge foot_left_joint on leg_left axis 0 -1 0
    range -0.78539818525314331 0.78539818525314331
    pivot 0 0 -0.2500000111758709
    insert 0 0 -1.6499999761581421
    group 1 mask -1 friction 0.5

body foot_left
    weld on foot_left_joint_pivot
    pivot 0 0 -0.10000000149011612
    com 0.10000000149011612 0 0.10000000149011612
    mass 3.1667252667371084
    inertia 0.021111501211992789 0.052778754225408356 0.052778754225408356
    insert 0 0 -1.7499999776482582
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.059999998658895493
        from 0 0 0.10000000149011612 to 0.20000000298023224 0 0.10000000149011612
        at -0.10000000149011612 0 -0.10000000149011612
