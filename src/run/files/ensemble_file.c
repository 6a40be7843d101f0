/* SPDX-License-Identifier: MIT */
/* An ensemble in a file of its own (opc/ensemble.h): its dimensions, its settings as text and the
 * sections a checkpoint has of it. Called by programs; training saves its model with the run. */
#include "opc/ensemble.h"

#include "base/pool.h"
#include "model/ensemble_private.h"
#include "run/files/checkpoint.h"

#include <string.h>

/* As it stands in the file: members of 8 bytes. */
struct shape {
    int64_t obs, act, which;
    uint64_t seed;
};

static int is_ensemble(const struct opc_predictor *p)
{
    return strcmp(p->type->name, "ensemble") == 0;
}

/* "name=value", one line each: what opc_ensemble_set reads. */
static int print_settings(const struct opc_ensemble *e, struct opc_text *out, struct opc_err *err)
{
    for (int i = 0; i < opc_ensemble_section.n; i++) {
        opc_text_addf(out, "%s=", opc_ensemble_section.fields[i].name);
        opc_field_print(&opc_ensemble_section.fields[i], &e->config, out);
        opc_text_add(out, "\n");
    }
    return opc_text_check(out, err);
}

static int read_settings(const struct opc_named *part, struct opc_ensemble_config *config,
                         struct opc_err *err)
{
    const char *at = part->data, *end = at + part->bytes;
    OPC_TRY(opc_section_defaults(&opc_ensemble_section, config, err));
    while (at < end) {
        char line[512];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t n = (size_t)((stop ? stop : end) - at);
        if (n >= sizeof line)
            return opc_fail(err, OPC_EDAMAGED, "a setting of %zu characters", n);
        memcpy(line, at, n);
        line[n] = '\0';
        OPC_TRY(opc_ensemble_set(config, line, err));
        at += n + 1;
    }
    return OPC_OK;
}

int opc_ensemble_save(const struct opc_predictor *model, const char *path, struct opc_err *err)
{
    if (!is_ensemble(model))
        return opc_fail(err, OPC_EUSER, "a model of type %s cannot be saved as an ensemble",
                        model->type->name);
    /* state only reads here; it is the same function that loads */
    struct opc_predictor *p = (struct opc_predictor *)model;
    const struct opc_ensemble *e = opc_ensemble_of(p);
    struct shape shape = {model->obs, model->act, e->which, e->seed};
    struct opc_gather gather = {.parts = 0};
    struct opc_text settings = {0};
    int code = print_settings(e, &settings, err);
    if (!code)
        code = opc_gather_visit(&gather, "shape", &shape, sizeof shape, err);
    if (!code)
        code = opc_gather_visit(&gather, "settings", settings.at, settings.used, err);
    if (!code)
        code = p->type->state(p, opc_gather_visit, &gather, err);
    if (!code)
        code = opc_checkpoint_save(path, OPC_PACK_MODEL, 0, (uint64_t)e->fits, gather.part,
                                   gather.parts, err);
    opc_text_free(&settings);
    return code;
}

static int load_ensemble(const struct opc_pack *pack, int threads, struct opc_predictor **out,
                         struct opc_err *err)
{
    enum { MAX_DIMENSION = 1 << 20 };
    struct shape shape;
    struct opc_ensemble_config config;
    struct opc_predictor *p;
    const struct opc_named *settings = opc_pack_find(pack, "settings");
    OPC_TRY(opc_pack_get(pack, "shape", &shape, sizeof shape, err));
    if (!settings || shape.obs < 1 || shape.obs > MAX_DIMENSION || shape.act < 1 ||
        shape.act > MAX_DIMENSION)
        return opc_fail(err, OPC_EDAMAGED, "it does not say what it is a model of");
    OPC_TRY(read_settings(settings, &config, err));
    OPC_TRY(opc_ensemble_make(&config, (int)shape.obs, (int)shape.act,
                              threads > 0 ? threads : opc_processors(), shape.seed,
                              (uint32_t)shape.which, &p, err));
    const int code = p->type->state(p, opc_pack_visit, (void *)pack, err);
    if (code)
        opc_predictor_destroy(p);
    else
        *out = p;
    return code;
}

int opc_ensemble_load(const char *path, int threads, struct opc_predictor **out,
                      struct opc_err *err)
{
    struct opc_pack *pack;
    OPC_TRY(opc_checkpoint_load(path, OPC_PACK_MODEL, &pack, err));
    const int code = load_ensemble(pack, threads, out, err);
    if (code)
        opc_within(err, "%s", path);
    opc_pack_free(pack);
    return code;
}
