/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include "opc/mem.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* A path in the test's directory; four of them are alive at a time. */
static const char *in(void **state, const char *name)
{
    static char ring[4][OPC_PATH];
    static int next;
    char *out = ring[next++ % 4];
    assert_int_equal(opc_path_join(out, *state, name, NULL), OPC_OK);
    return out;
}

static void assert_holds(const char *path, const void *want, size_t n)
{
    struct opc_err err;
    char *got = NULL;
    size_t size = 0;
    assert_ok(opc_file_read(path, 1 << 24, &got, &size, &err), &err);
    assert_int_equal(size, n);
    assert_same_bits(got, want, n);
    assert_int_equal(got[n], '\0');
    opc_free(got);
}

static int entries(void **state)
{
    DIR *dir = opendir(*state);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n - 2; /* . and .. */
}

static void what_was_written_is_read_back(void **state)
{
    struct opc_err err;
    const char *path = in(state, "f");
    assert_ok(opc_file_write(path, "", 0, &err), &err);
    assert_holds(path, "", 0);
    assert_ok(opc_file_write(path, "a\0b\n", 4, &err), &err);
    assert_holds(path, "a\0b\n", 4);
    assert_ok(opc_file_write(path, "new", 3, &err), &err);
    assert_holds(path, "new", 3);
    assert_int_equal(entries(state), 1);
}

static void pieces_of_any_size_make_one_file(void **state)
{
    enum { TOTAL = 400000 };
    struct opc_err err;
    const char *path = in(state, "f");
    unsigned char *all = opc_alloc(TOTAL, 1);
    for (int i = 0; i < TOTAL; i++)
        all[i] = (unsigned char)(i * 31 + i / 251);
    struct opc_save *s;
    assert_ok(opc_save_begin(path, &s, &err), &err);
    for (size_t at = 0, n = 0; at < TOTAL; at += n) {
        n = at < 1000 ? 7 : at < 100000 ? 65536 : 65535;
        n = n < TOTAL - at ? n : TOTAL - at;
        opc_save_bytes(s, all + at, n);
        opc_save_bytes(s, all, 0);
    }
    assert_false(opc_file_exists(path));
    assert_ok(opc_save_end(s, &err), &err);
    assert_holds(path, all, TOTAL);
    opc_free(all);
}

static void dropping_leaves_the_old_file_and_nothing_else(void **state)
{
    struct opc_err err;
    const char *path = in(state, "f");
    assert_ok(opc_file_write(path, "old", 3, &err), &err);
    struct opc_save *s;
    assert_ok(opc_save_begin(path, &s, &err), &err);
    opc_save_bytes(s, "new", 3);
    opc_save_drop(s);
    opc_save_drop(NULL);
    assert_holds(path, "old", 3);
    assert_int_equal(entries(state), 1);
}

static void left_overs_of_a_killed_process_are_no_obstacle(void **state)
{
    struct opc_err err;
    const char *path = in(state, "f");
    char name[64];
    snprintf(name, sizeof name, "f.%ld.0.tmp", (long)getpid());
    assert_ok(opc_file_write(in(state, name), "torn", 4, &err), &err);
    assert_ok(opc_file_write(path, "whole", 5, &err), &err);
    assert_holds(path, "whole", 5);
    assert_holds(in(state, name), "torn", 4);
}

/* In another folder, and relative to it. */
static void a_link_is_followed_unless_it_leads_nowhere(void **state)
{
    struct opc_err err;
    struct stat st;
    assert_ok(opc_make_directories(in(state, "folder"), &err), &err);
    assert_ok(opc_file_write(in(state, "folder/f"), "old", 3, &err), &err);
    const char *link = in(state, "folder/link"), *lost = in(state, "lost");
    assert_int_equal(symlink("f", link), 0);
    assert_int_equal(symlink("nowhere", lost), 0);
    assert_int_equal(chmod(in(state, "folder/f"), 0640), 0);
    assert_ok(opc_file_write(link, "new", 3, &err), &err);
    assert_true(stat(link, &st) == 0 && (st.st_mode & 0777) == 0640); /* stays as it was */
    assert_ok(opc_file_write(lost, "found", 5, &err), &err);
    assert_holds(in(state, "folder/f"), "new", 3);
    assert_true(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    assert_holds(lost, "found", 5);
    assert_true(lstat(lost, &st) == 0 && S_ISREG(st.st_mode));
}

static void places_that_cannot_be_written_are_named(void **state)
{
    struct opc_err err;
    const char *missing = in(state, "none/f");
    assert_fails(opc_file_write(missing, "x", 1, &err), OPC_EUSER, &err, missing);
    assert_mentions(&err, strerror(ENOENT));

    assert_ok(opc_file_write(in(state, "file"), "old", 3, &err), &err);
    const char *below = in(state, "file/f");
    assert_fails(opc_file_write(below, "x", 1, &err), OPC_EUSER, &err, below);
    assert_mentions(&err, strerror(ENOTDIR));
    assert_holds(in(state, "file"), "old", 3);

    /* Renaming onto these would replace the device, or fail late. */
    assert_fails(opc_file_write("/dev/null", "x", 1, &err), OPC_EUSER, &err, "/dev/null");
    assert_int_equal(opc_file_write(*state, "x", 1, &err), OPC_EUSER);
    const char *link = in(state, "null");
    assert_int_equal(symlink("/dev/null", link), 0);
    assert_fails(opc_file_write(link, "x", 1, &err), OPC_EUSER, &err, link);

    char much[OPC_PATH + 10];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_fails(opc_file_write(much, "x", 1, &err), OPC_EUSER, &err, strerror(ENAMETOOLONG));
    much[OPC_PATH - 5] = '\0'; /* fits, but not with the suffix of the temporary name */
    assert_fails(opc_file_write(much, "x", 1, &err), OPC_EUSER, &err, strerror(ENAMETOOLONG));
}

/* The limit on file sizes behaves as a full disk does: a short write first, then none. */
static void a_full_disk_leaves_the_old_file_whole(void **state)
{
    enum { N = 200000 };
    struct opc_err err = {0};
    const char *path = in(state, "f");
    char *much = opc_alloc(N, 1);
    assert_ok(opc_file_write(path, "old", 3, &err), &err);

    struct rlimit before, tight;
    getrlimit(RLIMIT_FSIZE, &before);
    tight = before;
    tight.rlim_cur = 100001;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    const int at_once = opc_file_write(path, much, N, &err);
    struct opc_err late = {0};
    struct opc_save *s = NULL;
    int in_pieces = opc_save_begin(path, &s, &late);
    for (int i = 0; !in_pieces && i < N / 1000; i++)
        opc_save_bytes(s, much, 1000);
    in_pieces = in_pieces ? in_pieces : opc_save_end(s, &late);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
    opc_free(much);

    assert_fails(at_once, OPC_EIO, &err, path);
    assert_mentions(&err, "ulimit -f");
    assert_fails(in_pieces, OPC_EIO, &late, path);
    assert_mentions(&late, "ulimit -f");
    assert_holds(path, "old", 3);
    assert_int_equal(entries(state), 1);
}

/* Whatever call fails, the file is the old or the new one, and nothing else is left behind. */
static int overwrite(void *ctx, struct opc_err *err)
{
    const char *path = ctx;
    const int code = opc_file_write(path, "newer", 5, err);
    char got[16] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    if (strcmp(got, "newer"))
        assert_string_equal(got, "old");
    else
        assert_true(code == OPC_OK || strstr(err->text, "power cut"));
    f = fopen(path, "w");
    fputs("old", f);
    fclose(f);
    return code;
}

static void writing_survives_every_fault(void **state)
{
    struct opc_err err;
    char path[OPC_PATH];
    opc_path_join(path, *state, "f", NULL);
    assert_ok(opc_file_write(path, "old", 3, &err), &err);
    assert_survives_lack_of_memory(overwrite, path);
    assert_survives_system_faults(overwrite, path);
    assert_int_equal(entries(state), 1);
}

static int read_back(void *ctx, struct opc_err *err)
{
    char *got = NULL;
    size_t n;
    const int code = opc_file_read(ctx, 100, &got, &n, err);
    assert_true((got != NULL) == (code == OPC_OK));
    opc_free(got);
    return code;
}

static void reading_survives_every_fault(void **state)
{
    struct opc_err err;
    char path[OPC_PATH];
    opc_path_join(path, *state, "f", NULL);
    assert_ok(opc_file_write(path, "old", 3, &err), &err);
    assert_survives_lack_of_memory(read_back, path);
    assert_survives_system_faults(read_back, path);
}

static void reading_stops_at_the_limit(void **state)
{
    struct opc_err err;
    const char *path = in(state, "f");
    char *got = NULL;
    assert_ok(opc_file_write(path, "12345", 5, &err), &err);
    assert_ok(opc_file_read(path, 5, &got, NULL, &err), &err);
    assert_string_equal(got, "12345");
    opc_free(got);
    got = NULL;
    assert_fails(opc_file_read(path, 4, &got, NULL, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, "4 bytes");
    assert_int_equal(opc_file_read(path, 0, &got, NULL, &err), OPC_EUSER);
    assert_null(got);
}

static void what_cannot_be_read_is_named(void **state)
{
    struct opc_err err;
    char *got = NULL;
    const char *path = in(state, "none");
    assert_fails(opc_file_read(path, 10, &got, NULL, &err), OPC_EUSER, &err, path);
    assert_mentions(&err, strerror(ENOENT));
    assert_fails(opc_file_read(*state, 10000, &got, NULL, &err), OPC_EUSER, &err, *state);
    assert_mentions(&err, strerror(EISDIR));
    assert_null(got);
}

/* A pipe tells no size: the buffer has to grow with what comes. */
static void files_without_a_size_are_read_to_their_end(void **state)
{
    enum { N = 300000 };
    const char *path = in(state, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        static char much[N];
        memset(much, 'y', N);
        const int fd = open(path, O_WRONLY);
        _exit(fd >= 0 && opc_write_all(fd, much, N) ? 0 : 1);
    }
    struct opc_err err;
    char *got = NULL;
    size_t n = 0;
    const int code = opc_file_read(path, N + 5, &got, &n, &err);
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_ok(code, &err);
    assert_int_equal(n, N);
    assert_int_equal(strspn(got, "y"), N);
    opc_free(got);
}

static void directories_are_made_with_their_parents(void **state)
{
    struct opc_err err;
    const char *deep = in(state, "a/b//c/");
    assert_ok(opc_make_directories(deep, &err), &err);
    assert_true(opc_is_directory(in(state, "a/b/c")));
    assert_ok(opc_make_directories(deep, &err), &err);
    assert_ok(opc_make_directories("/", &err), &err);
    assert_ok(opc_make_directories(".", &err), &err);

    assert_ok(opc_file_write(in(state, "file"), "", 0, &err), &err);
    assert_true(opc_file_exists(in(state, "file")));
    assert_false(opc_is_directory(in(state, "file")));
    assert_fails(opc_make_directories(in(state, "file/x"), &err), OPC_EUSER, &err,
                 in(state, "file"));
    assert_null(strstr(err.text, in(state, "file/x"))); /* the part that is a file is named */
    opc_fault_system(1);
    assert_int_equal(opc_make_directories(in(state, "z"), &err), OPC_EIO);
    assert_false(opc_file_exists(in(state, "z")));
}

static void paths_are_joined_and_taken_apart(void **state)
{
    (void)state;
    char out[OPC_PATH];
    struct opc_err err;
    static const char *const JOIN[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"},
                                          {"", "b", "b"},    {"a", "/b", "/b"},
                                          {"/", "b", "/b"},  {".", "b/c", "./b/c"}};
    for (size_t i = 0; i < sizeof JOIN / sizeof *JOIN; i++) {
        assert_ok(opc_path_join(out, JOIN[i][0], JOIN[i][1], &err), &err);
        assert_string_equal(out, JOIN[i][2]);
    }
    static const char *const PART[][3] = {{"a/b/c", "a/b", "c"}, {"c", ".", "c"}, {"/c", "/", "c"},
                                          {"a//c", "a", "c"},    {"a/", "a", ""}, {"", ".", ""}};
    for (size_t i = 0; i < sizeof PART / sizeof *PART; i++) {
        assert_ok(opc_path_parent(out, PART[i][0], &err), &err);
        assert_string_equal(out, PART[i][1]);
        assert_string_equal(opc_path_name(PART[i][0]), PART[i][2]);
    }
    char much[OPC_PATH];
    memset(much, 'x', sizeof much - 1);
    much[sizeof much - 1] = '\0';
    assert_ok(opc_path_join(out, "", much, &err), &err);
    assert_int_equal(opc_path_join(out, "a", much, &err), OPC_EUSER);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, test_make_dir, test_remove_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(what_was_written_is_read_back),
        IN_DIR(pieces_of_any_size_make_one_file),
        IN_DIR(dropping_leaves_the_old_file_and_nothing_else),
        IN_DIR(left_overs_of_a_killed_process_are_no_obstacle),
        IN_DIR(a_link_is_followed_unless_it_leads_nowhere),
        IN_DIR(places_that_cannot_be_written_are_named),
        IN_DIR(a_full_disk_leaves_the_old_file_whole),
        IN_DIR(writing_survives_every_fault),
        IN_DIR(reading_survives_every_fault),
        IN_DIR(reading_stops_at_the_limit),
        IN_DIR(what_cannot_be_read_is_named),
        IN_DIR(files_without_a_size_are_read_to_their_end),
        IN_DIR(directories_are_made_with_their_parents),
        cmocka_unit_test(paths_are_joined_and_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
