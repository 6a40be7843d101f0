/* SPDX-License-Identifier: MIT */
/* Environments that a program brings along (opc_env_register), found by name like the built-in
 * ones. env.c asks here when a name is not in its own list. Entries are only ever added, and a type
 * must live as long as the program, so what was found stays valid without a lock. */
#include "env/types.h"

#include <pthread.h>
#include <string.h>

enum { MAX_REGISTERED = 64 };

static struct {
    pthread_mutex_t lock;
    int n;
    const struct opc_env_type *type[MAX_REGISTERED];
} registered = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct opc_env_type *find_registered(const char *name)
{
    for (int i = 0; i < registered.n; i++)
        if (strcmp(registered.type[i]->name, name) == 0)
            return registered.type[i];
    return NULL;
}

const struct opc_env_type *opc_env_registered(const char *name)
{
    pthread_mutex_lock(&registered.lock);
    const struct opc_env_type *type = find_registered(name);
    pthread_mutex_unlock(&registered.lock);
    return type;
}

/* A name must not mean two things: a plugin's path, arguments, a built-in task. */
static int check_name(const char *name, struct opc_err *err)
{
    if (!*name || strlen(name) > 100 || strpbrk(name, "? \t\n") || opc_env_is_plugin(name))
        return opc_fail(err, OPC_EUSER,
                        "'%s' will not do as the name of an environment: it must have 1 to 100 "
                        "characters, no '?' and no space, and not end in .so",
                        name);
    for (int i = 0; opc_env_type_at(i); i++)
        if (strcmp(opc_env_type_at(i)->name, name) == 0)
            return opc_fail(err, OPC_EUSER, "there is a built-in environment called '%s'", name);
    return OPC_OK;
}

int opc_env_register(const struct opc_env_plugin *plugin, struct opc_err *err)
{
    OPC_TRY(opc_env_check_plugin(plugin, err));
    const struct opc_env_type *type = plugin->type;
    OPC_TRY(check_name(type->name, err));
    int code = OPC_OK;
    pthread_mutex_lock(&registered.lock);
    const struct opc_env_type *there = find_registered(type->name);
    if (there && there != type)
        code = opc_fail(err, OPC_EUSER, "another environment is registered as '%s'", type->name);
    else if (!there && registered.n == MAX_REGISTERED)
        code = opc_fail(err, OPC_EUSER, "%d environments are registered, and there can be no more",
                        MAX_REGISTERED);
    else if (!there)
        registered.type[registered.n++] = type;
    pthread_mutex_unlock(&registered.lock);
    return code;
}
