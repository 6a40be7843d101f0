/* SPDX-License-Identifier: MIT */
/* The settings of a run as one struct, opc_values: its sections, how they are named, printed and
 * set, and what follows from them. Where settings come from is in config_file.c, whether they fit
 * each other in config_check.c, and their checksum in config_hash.c.
 *
 * Invariant: a setting is one row of a table (OPC_TRAIN_FIELDS and its like). Its default, range,
 * help, member, parsing and printing all come from that row. */
#include "run/config/config.h"

#include "env/types.h"
#include "opc/mem.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The tables of config.h as data. SELF is the struct whose offsets OPC_SECTION takes. */
#define SELF struct opc_train_config
static const struct opc_section train_section =
    OPC_SECTION("train", "Algorithm 1: how much of what, and when", OPC_TRAIN_FIELDS);
#undef SELF
#define SELF struct opc_env_config
static const struct opc_section env_section =
    OPC_SECTION("env", "the real environment", OPC_ENV_FIELDS);
#undef SELF
#define SELF struct opc_opc_config
static const struct opc_section opc_section =
    OPC_SECTION("opc", "Algorithm 2: imagined rollouts", OPC_OPC_FIELDS);
#undef SELF
#define SELF struct opc_data_config
static const struct opc_section data_section =
    OPC_SECTION("data", "what the agent learns from", OPC_DATA_FIELDS);
#undef SELF
#define SELF struct opc_eval_config
static const struct opc_section eval_section =
    OPC_SECTION("eval", "how good the policy is", OPC_EVAL_FIELDS);
#undef SELF
#define SELF struct opc_record_config
static const struct opc_section record_section =
    OPC_SECTION("record", "what is kept besides the results", OPC_RECORD_FIELDS);
#undef SELF

/* Where the settings of agent i begin in `agents`; for the number after the last one, their end. */
static size_t agent_offset(int i)
{
    size_t at = 0;
    for (int k = 0; k < i; k++) {
        const struct opc_section *s = opc_agent_type(k)->settings;
        at += s ? (s->size + OPC_AGENT_ALIGN - 1) / OPC_AGENT_ALIGN * OPC_AGENT_ALIGN : 0;
    }
    return at;
}

const void *opc_values_agent(const struct opc_values *v, int i)
{
    return opc_agent_type(i)->settings ? v->agents + agent_offset(i) : NULL;
}

int opc_config_parts(struct opc_values *v, struct opc_part out[OPC_PARTS_MAX])
{
    /* The order here is the order of sections in printed files. */
    const struct opc_part first[] = {
        {&train_section, &v->train},
        {&env_section, &v->env},
        {&opc_section, &v->opc},
        {&data_section, &v->data},
        {&opc_ensemble_section, &v->model},
    };
    const struct opc_part last[] = {{&eval_section, &v->eval}, {&record_section, &v->record}};
    int n = (int)(sizeof first / sizeof *first);
    memcpy(out, first, sizeof first);
    for (int i = 0; opc_agent_type(i); i++) {
        const struct opc_section *s = opc_agent_type(i)->settings;
        if (s && n + 2 < OPC_PARTS_MAX && agent_offset(i + 1) <= sizeof v->agents)
            out[n++] = (struct opc_part){s, v->agents + agent_offset(i)};
    }
    memcpy(out + n, last, sizeof last);
    return n + 2;
}

const struct opc_field *opc_config_field(struct opc_values *v, const char *key, void **section,
                                         struct opc_err *err)
{
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(v, part);
    if (opc_config_moved(key, NULL))
        key = opc_config_moved(key, NULL);
    for (int i = 0; i < parts; i++) {
        const size_t n = strlen(part[i].section->name);
        if (strncmp(key, part[i].section->name, n) != 0 || key[n] != '.')
            continue;
        const struct opc_field *f = opc_section_find(part[i].section, key + n + 1);
        if (f && section)
            *section = part[i].values;
        if (f)
            return f;
    }
    /* Setting a name that does not exist fails with the right message, names that are similar
     * included. A copy is set, in case it should not fail. */
    struct opc_values scratch = *v;
    opc_config_parts(&scratch, part);
    opc_parts_set(part, parts, key, "", err);
    return NULL;
}

const char *opc_config_moved(const char *key, const char **agent)
{
    static const struct {
        const char *from, *to, *agent;
    } MOVED[] = {{"slbo.reward", "model.reward", "slbo"}};
    for (size_t i = 0; i < sizeof MOVED / sizeof *MOVED; i++)
        if (strcmp(MOVED[i].from, key) == 0) {
            if (agent)
                *agent = MOVED[i].agent;
            return MOVED[i].to;
        }
    return NULL;
}

bool opc_config_key(const char *key, char out[OPC_KEY])
{
    struct opc_values values; /* only the sections are looked at */
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&values, part);
    if (opc_config_moved(key, NULL))
        key = opc_config_moved(key, NULL);
    for (int i = 0; i < parts; i++) {
        const size_t n = strlen(part[i].section->name);
        if (strncmp(key, part[i].section->name, n) != 0 || key[n] != '.')
            continue;
        const struct opc_field *f = opc_section_find(part[i].section, key + n + 1);
        if (f)
            snprintf(out, OPC_KEY, "%s.%s", part[i].section->name, f->name);
        return f != NULL;
    }
    return false;
}

/* ---- the object ------------------------------------------------------------------------------ */

/* path = NULL: defaults only. */
static int config_create(const char *path, struct opc_config **out, struct opc_err *err)
{
    struct opc_config *config = opc_alloc(1, sizeof *config);
    if (!config)
        return opc_fail(err, OPC_ENOMEM, "not enough memory for the settings");
    int code = opc_sources_create(&config->from, err);
    if (!code && path)
        code = opc_sources_read(config->from, path, err);
    if (!code)
        code = opc_sources_resolve(config->from, &config->set, err);
    if (code) {
        opc_config_destroy(config);
        return code;
    }
    *out = config;
    return OPC_OK;
}

int opc_config_create(struct opc_config **out, struct opc_err *err)
{
    return config_create(NULL, out, err);
}

int opc_config_load(const char *path, struct opc_config **out, struct opc_err *err)
{
    return config_create(path, out, err);
}

void opc_config_destroy(struct opc_config *config)
{
    if (!config)
        return;
    opc_sources_destroy(config->from);
    opc_free(config);
}

int opc_config_set(struct opc_config *config, const char *assignment, struct opc_err *err)
{
    char key[128];
    const char *is = strchr(assignment, '=');
    if (!is || is == assignment)
        return opc_fail(err, OPC_EUSER, "'%s' is not a setting; write section.name=value",
                        assignment);
    snprintf(key, sizeof key, "%.*s", (int)(is - assignment), assignment);
    /* The assignment is kept only if all settings still resolve with it. */
    int code = opc_sources_add(config->from, key, is + 1, err);
    if (code)
        return code;
    struct opc_values values;
    code = opc_sources_resolve(config->from, &values, err);
    if (code)
        opc_sources_drop_last(config->from);
    else
        config->set = values;
    return code;
}

/* ---- printing -------------------------------------------------------------------------------- */

/* Texts are quoted where YAML needs it. */
static void print_value(const struct opc_field *f, const void *values, struct opc_text *text)
{
    if (f->kind == OPC_FIELD_TEXT || f->kind == OPC_FIELD_PATH)
        opc_yaml_add_word(text, (const char *)values + f->offset);
    else
        opc_field_print(f, values, text);
}

void opc_values_print(const struct opc_values *v, struct opc_text *text)
{
    struct opc_values copy = *v; /* parts are not const */
    struct opc_part part[OPC_PARTS_MAX];
    const int parts = opc_config_parts(&copy, part);
    for (int i = 0; i < parts; i++) {
        opc_text_addf(text, "%s:\n", part[i].section->name);
        for (int k = 0; k < part[i].section->n; k++) {
            const struct opc_field *f = &part[i].section->fields[k];
            opc_text_addf(text, "  %s: ", f->name);
            print_value(f, part[i].values, text);
            opc_text_add(text, "\n");
        }
    }
}

bool opc_config_may_go_on(const struct opc_values *v)
{
    const struct opc_agent_type *agent = opc_agent_of(v);
    return !agent->knows_its_end || !agent->knows_its_end(opc_values_agent(v, v->train.agent));
}

/* Hands a text over to the caller, who frees it with opc_free; frees it on failure. */
static int hand_over(struct opc_text *text, char **out, struct opc_err *err)
{
    opc_text_add(text, ""); /* there is a block even if nothing was printed */
    const int code = opc_text_check(text, err);
    if (code)
        opc_text_free(text);
    else
        *out = text->at;
    return code;
}

int opc_config_print(const struct opc_config *config, char **out, struct opc_err *err)
{
    struct opc_text text = {0};
    opc_values_print(&config->set, &text);
    return hand_over(&text, out, err);
}

int opc_config_get(const struct opc_config *config, const char *name, char **out,
                   struct opc_err *err)
{
    struct opc_values copy = config->set;
    struct opc_text text = {0};
    void *section;
    const struct opc_field *f = opc_config_field(&copy, name, &section, err);
    if (!f)
        return OPC_EUSER;
    opc_field_print(f, section, &text);
    return hand_over(&text, out, err);
}

unsigned opc_method_colour(const struct opc_values *v)
{
    /* With the default agent it is the transition that makes the method: SAC, MBPO or OPC. */
    const unsigned colour = opc_transition_of(v)->colour;
    const struct opc_agent_type *agent = opc_agent_of(v);
    if (v->train.agent == 0 && colour)
        return colour;
    return opc_transition_of(v)->corrects && agent->corrected_colour ? agent->corrected_colour
                                                                     : agent->colour;
}

const char *opc_method_label(const struct opc_values *v)
{
    const struct opc_transition_type *tr = opc_transition_of(v);
    /* MBPO(*) of the paper improves the policy once an epoch, when all its steps are made; the
     * original MBPO does between the steps. How often the model is fitted does not tell: on the
     * pendulum an epoch of the original is one fit long. */
    const bool original = opc_every(v, v->train.improve_every) < v->train.steps_per_epoch;
    const char *label = original ? tr->original_label : tr->label;
    const struct opc_agent_type *agent = opc_agent_of(v);
    if (v->train.agent == 0 && label)
        return label;
    return tr->corrects && agent->corrected_label ? agent->corrected_label : agent->label;
}

/* ---- what follows ---------------------------------------------------------------------------- */

int opc_share(int all, int parts, int k)
{
    return (int)((int64_t)all * (k + 1) / parts - (int64_t)all * k / parts);
}

double opc_updates_exactly(const struct opc_values *v)
{
    return round(v->train.updates_per_step * opc_every(v, v->train.improve_every));
}

int opc_updates(const struct opc_values *v)
{
    return (int)opc_updates_exactly(v);
}

/* MBPO's rollout schedule: epochs up to e0 have h0, later ones int(h0 + share * (h1 - h0)). */
int opc_horizon(const struct opc_values *v, int epoch)
{
    const int *h = v->opc.horizon.at;
    if (v->opc.horizon.n == 1)
        return h[0];
    if (epoch <= h[0])
        return h[2];
    const double share = epoch >= h[1] ? 1 : (double)(epoch - h[0]) / (h[1] - h[0]);
    return (int)(h[2] + share * (h[3] - h[2]));
}

int opc_horizon_max(const struct opc_values *v)
{
    const int *h = v->opc.horizon.at;
    return v->opc.horizon.n == 1 || h[2] > h[3] ? h[v->opc.horizon.n == 1 ? 0 : 2] : h[3];
}

double opc_target_entropy(const char *env_name)
{
    /* Janner et al. set the target entropy by task, in nats, and not to minus the number of
     * actions. The same task of another engine gets the same. */
    static const struct {
        const char *task;
        double entropy;
    } TABLE[] = {
        {"cartpole", -0.05},
        {"*inverted_pendulum*", -0.05},
        {"*inverted_double_pendulum", -0.5},
        {"*hopper*", -1},
        {"*walker2d*", -3},
        {"*half_cheetah*", -3},
        {"*ant_truncated_obs*", -4},
        {"*humanoid_truncated_obs", -2},
    };
    char task[OPC_TEXT_SIZE];
    /* without the arguments */
    snprintf(task, sizeof task, "%.*s", (int)strcspn(env_name, "?"), env_name);
    /* whatever a plugin, a program and their folders are called */
    if (opc_env_is_plugin(task) || opc_env_is_process(task))
        return (double)NAN;
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (fnmatch(TABLE[i].task, task, 0) == 0)
            return TABLE[i].entropy;
    return (double)NAN;
}

int opc_config_check(const struct opc_config *config, struct opc_err *err)
{
    /* A file that varies a setting describes several runs; one of them must have been chosen. */
    const int code = opc_sources_settled(config->from, err);
    if (code)
        return code;
    return opc_values_check(&config->set, err) ? opc_sources_locate(config->from, err) : OPC_OK;
}
