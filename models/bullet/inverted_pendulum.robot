# SPDX-License-Identifier: MIT
# inverted_pendulum.robot - a pole hinged on a cart on a rail; it touches nothing (group 0).
#
# Read by src/env/bullet/model.c; its header describes the words. Bodies come in the order the solver
# sees them; each joint is a massless pivot and the limb is welded to it, because the recorded
# trajectories were made that way. m, kg, kg m^2, rad. Digits beyond the seventh are not noise:
# most numbers are decimal fractions rounded to float, and exact traces need those very values.

body world_anchor
    base fixed
    group 2 mask -3 friction 0.5

body slider_pivot
    slide slider on world_anchor axis 1 0 0
    range -1 1
    group 1 mask -1 friction 0.5

body cart
    weld on slider_pivot
    mass 10.471975980099771
    inertia 0.06981317528125984 0.17453293820314961 0.17453293820314961
    group 0 mask 1 friction 1
    capsule_z 0.10000000149011612 0.20000000298023224
        turn 0.7070000171661377 0 0.7070000171661377 0

body hinge_pivot
    hinge hinge on cart axis 0 1 0
    group 1 mask -1 friction 0.5

body pole
    weld on hinge_pivot
    com 0.00050000002374872565 0 0.30000001192092896
    mass 5.0185915458104722
    inertia 0.26639019844481543 0.26653950154827094 0.026650811429848154
    group 0 mask 1 friction 1
    two_spheres 0.048999998718500137
        from 0 0 0 to 0.0010000000474974513 0 0.60000002384185791
        at -0.00050000002374872565 0 -0.30000001192092896
