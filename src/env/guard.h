/* SPDX-License-Identifier: MIT */
/* env/guard.h - who is at fault when the program dies inside an environment?
 *
 * Plugins and engines run in our process: if one crashes, calls exit or never returns, nothing of
 * ours gets to write a message. So env.c notes which function of which environment a thread is in,
 * and handlers that only the program installs (src/cli/main.c; the library never does) name it. */
#ifndef OPC_ENV_GUARD_H
#define OPC_ENV_GUARD_H

/* Notes that this thread is about to call `function` of the environment `spec`, and that it is
 * back. Both texts must live until then. */
void opc_guard_enter(const char *spec, const char *function);
void opc_guard_leave(void);

/* Names the environment on a crash signal or an exit during a call, and exits with status 5. */
void opc_guard_install(void);
/* Ends the program in the same way when a call takes longer than OPC_ENV_DEADLINE seconds (30; 0:
 * never). Called when a plugin that simulates is opened: it ticks with SIGALRM once a second. Does
 * nothing unless the guard is installed. */
void opc_guard_watch(void);

#endif
