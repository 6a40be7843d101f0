/* SPDX-License-Identifier: MIT */
/* num/adam.h - Adam (Kingma, Ba 2015) over one run of parameters.
 *
 *     m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2
 *     published and TensorFlow 1:  p -= lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)
 *     PyTorch (`torch`):           p -= lr / (1 - b1^t) * m / (sqrt(v / (1 - b2^t)) + eps)
 *
 * They differ only while v is tiny. Weight decay is L2: g = grad + decay * p. */
#ifndef OPC_NUM_ADAM_H
#define OPC_NUM_ADAM_H

#include "num/kernel.h"

struct opc_adam_config {
    double learning_rate, beta1, beta2, eps;
    bool torch;
};
static inline struct opc_adam_config opc_adam_usual(double rate)
{
    return (struct opc_adam_config){
        .learning_rate = rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

struct opc_adam {
    struct opc_adam_config config;
    long steps;
    struct opc_adam_rates now; /* of the step that opc_adam_begin opened, without decay */
    size_t count;
    float *m, *v; /* [count] */
};

int opc_adam_create(size_t count, struct opc_adam_config, struct opc_adam **out,
                    struct opc_err *err);
void opc_adam_destroy(struct opc_adam *); /* NULL is fine */
size_t opc_adam_bytes(size_t count);      /* what create takes */

/* A step: begin once, and then every parameter once, in any ranges, by any threads. decay: weight
 * decay of the range. */
void opc_adam_begin(struct opc_adam *);
void opc_adam_range(struct opc_adam *, size_t first, size_t count, double decay, const float *grad,
                    float *param); /* grad and param of the range's first element */
/* A whole step: begins it and updates all parameters. */
void opc_adam_step(struct opc_adam *, double decay, const float *grad, float *param);

#endif
