"""A command that is told to end tidies up, says so in a line, and ends with the shell's code."""

import os
import signal
import subprocess
import sys
import time

import pytest

WRITING = """
import os, signal, sys
from priornet.cli.sigterm import end_on_sigterm
from priornet.writing import whole_file

end_on_sigterm()
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    if os.fork() == 0:  # a process that is forked ends at once: it has nothing to tidy up
        os.kill(os.getpid(), signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.wait()[1]), *os.listdir("."), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
"""

STUCK = """
import ctypes, os, signal
from priornet.cli.sigterm import end_on_sigterm

end_on_sigterm(grace=0.1)
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(256)
libc.pthread_mutex_lock(mutex)
while True:
    try:
        print("waiting", flush=True)
        libc.pthread_mutex_lock(mutex)  # for ever
    except SystemExit:  # it came before that
        pass
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a lock of Linux's C library")
def test_sigterm_ends_a_process_that_waits_in_a_library():
    program = [sys.executable, "-c", STUCK]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 143
        assert process.stderr.read() == b"Error: Terminated.\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_sigterm_unwinds_this_process_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WRITING, "a"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout.startswith(f"{-signal.SIGTERM} .priornet-")
    assert os.listdir(tmp_path) == []


def test_sigterm_ends_a_command_as_an_interruption_does(models, table, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("prediction,lower,upper,total,data,knowledge,in_domain,verdict\n")
    program = [sys.executable, "-m", "priornet", "predict", models / "one", "-", "--out", out, "-q"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        header, *rows = table.to_csv(index=False).encode().splitlines(keepends=True)
        process.stdin.write(header + b"".join(rows) * 800)  # more than it reads at once; no end
        process.stdin.flush()
        deadline = time.monotonic() + 120
        while len(os.listdir(tmp_path)) == 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(os.listdir(tmp_path)) == 2
        process.send_signal(signal.SIGTERM)
        process.stdin.close()  # until then it waits in Arrow, which cannot be interrupted
        assert process.wait(120) == 143
        assert process.stderr.read() == b"Error: Terminated.\n"
    assert os.listdir(tmp_path) == ["out.csv"]
    assert out.read_text() == "prediction,lower,upper,total,data,knowledge,in_domain,verdict\n"
