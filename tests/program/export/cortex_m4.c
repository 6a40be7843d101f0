/* SPDX-License-Identifier: MIT */
/* An exported policy on a microcontroller without an operating system or a C library: the vector
 * table of a Cortex-M4, which turns its floating-point unit on, runs the self-tests and leaves
 * through the semihosting of the debugger, or of qemu. The exit status is 0 if both agree. */
#include "model.h"
#include "policy.h"

#define COPROCESSORS (*(volatile uint32_t *)0xE000ED88u) /* CPACR: access to the FPU */

/* SYS_EXIT_EXTENDED: the reason "application exit", and the exit status. */
static void leave(uint32_t status)
{
    uint32_t block[2];
    register uint32_t operation __asm__("r0") = 0x20;
    register uint32_t *argument __asm__("r1") = block;
    block[0] = 0x20026;
    block[1] = status;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(argument) : "memory");
}

static void start(void)
{
    COPROCESSORS |= 0xFu << 20;
    __asm__ volatile("dsb\n isb");
    leave((uint32_t)(policy_self_test() != 0 || model_self_test() != 0));
    for (;;) {
    }
}

/* Where the stack begins, and where the program does. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[2] = {0x20010000u,
                                                                                (uintptr_t)start};
