# SPDX-License-Identifier: MIT
# half_cheetah.robot - a planar runner with two legs; limbs have their mass at the joint.
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
    pivot 0 0 0.69999998807907104
    group 1 mask -1 friction 0.5

body ignorez_pivot
    slide ignorez on ignorex_pivot axis 0 0 1
    group 1 mask -1 friction 0.5

body ignorey_pivot
    hinge ignorey on ignorez_pivot axis 0 1 0
    group 1 mask -1 friction 0.5

body torso
    weld on ignorey_pivot
    mass 9.4573333558346899
    inertia 0.11850954790425451 1.5646349198758465 1.4927563304017173
    group 1 mask 0 friction 0.80000001192092896
    two_spheres 0.046000000089406967
        from -0.5 0 0 to 0.5 0 0
    capsule_z 0.046000000089406967 0.30000001192092896
        at 0.60000002384185791 0 0.10000000149011612
        turn_y 0.87000000476837158

body bthigh_pivot
    hinge bthigh on torso axis 0 1 0
    range -0.51999998092651367 1.0499999523162842
    pivot -0.5 0 0
    group 1 mask -1 friction 0.5

body bthigh
    weld on bthigh_pivot
    mass 2.3355269537212036
    inertia 0.026652967211981606 0.043289211762144474 0.019930894585686074
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.28999999165534973
        at 0.10000000149011612 0 -0.12999999523162842
        turn_y -3.7999999523162842

body bshin_pivot
    hinge bshin on bthigh axis 0 1 0
    range -0.7850000262260437 0.7850000262260437
    pivot 0.15999999642372131 0 -0.25
    group 1 mask -1 friction 0.5

body bshin
    weld on bshin_pivot
    mass 2.4020031892472424
    inertia 0.014834623910841841 0.043925331488187634 0.032479133422815595
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.30000001192092896
        at -0.14000000059604645 0 -0.070000000298023224
        turn_y -2.0299999713897705

body bfoot_pivot
    hinge bfoot on bshin axis 0 1 0
    range -0.40000000596046448 0.7850000262260437
    pivot -0.2800000011920929 0 -0.14000000059604645
    group 1 mask -1 friction 0.5

body bfoot
    weld on bfoot_pivot
    mass 10
    inertia 0.079277080760657884 0.094460236021447888 0.029289821982292942
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.18799999356269836
        at 0.029999999329447746 0 -0.097000002861022949
        turn_y -0.27000001072883606

body fthigh_pivot
    hinge fthigh on torso axis 0 1 0
    range -1.5 0.80000001192092896
    pivot 0.5 0 0
    group 1 mask -1 friction 0.5

body fthigh
    weld on fthigh_pivot
    mass 2.1759843846871485
    inertia 0.024566760558901394 0.035076196006900914 0.013579024098597145
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.26600000262260437
        at -0.070000000298023224 0 -0.11999999731779099
        turn_y 0.51999998092651367

body fshin_pivot
    hinge fshin on fthigh axis 0 1 0
    range -1.2000000476837158 1.1000000238418579
    pivot -0.14000000059604645 0 -0.23999999463558197
    group 1 mask -1 friction 0.5

body fshin
    weld on fshin_pivot
    mass 1.8170134062463057
    inertia 0.015169275220180781 0.023169122181025216 0.010563047215886386
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.21199999749660492
        at 0.064999997615814209 0 -0.090000003576278687
        turn_y -0.60000002384185791

body ffoot_pivot
    hinge ffoot on fshin axis 0 1 0
    range -3.0999999046325684 -0.30000001192092896
    pivot 0.12999999523162842 0 -0.18000000715255737
    group 1 mask -1 friction 0.5

body ffoot
    weld on ffoot_pivot
    mass 10
    inertia 0.05643309656387259 0.08506240486834088 0.042735975025971221
    group 1 mask 0 friction 0.80000001192092896
    capsule_z 0.046000000089406967 0.14000000059604645
        at 0.045000001788139343 0 -0.070000000298023224
        turn_y -0.60000002384185791
