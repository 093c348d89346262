import json as library

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports.hostile import mapped

from postmortem.redact import Redactor, redact_result
from postmortem.result import Kill
from postmortem_reports import html, json, markdown, perfetto, terminal
from reports import factory

CONTAINER = "4f1d2c3b5a69788796a5b4c3d2e1f00112233445566778899aabbccddeeff00a"

# Planted by kind: what a log states, and what must not survive of it.
PLANTED = [
    ("host", "2026-03-03T14:02:11.123456+00:00 gpu-node-7 kernel: oom", "gpu-node-7"),
    ("host", "Mar  3 14:02:11 prover03 systemd[1]: started", "prover03"),
    ("host", "connect to db1.acme-corp.internal failed", "db1.acme-corp.internal"),
    ("host", "hostname=worker-a", "worker-a"),
    ("host", "ip-10-0-3-17 is up", "ip-10-0-3-17"),
    ("ip", "listen=10.20.30.40:9820", "10.20.30.40"),
    ("ip", "peer [2001:db8::7334]:22", "2001:db8::7334"),
    ("ip", "peer fe80::1%eth0 up", "fe80::1"),
    ("mac", "link 0a:1b:2c:3d:4e:5f up", "0a:1b:2c:3d:4e:5f"),
    ("user", "user=mallory started", "mallory"),
    ("user", "uid=1000(trudy) gid=1000", "trudy"),
    ("user", "ssh peggy@bastion", "peggy"),
    ("email", "mail to jane.doe+oom@example.org now", "jane.doe+oom@example.org"),
    ("secret", "key AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    (
        "secret",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    ),
    ("secret", "found wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    ("secret", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("secret", "Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
    ("secret", '{"password": "hunter2!"}', "hunter2!"),
    ("secret", "--token=s3cr3t-value", "s3cr3t-value"),
    ("secret", "digest d41d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427e"),
    (
        "secret",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc_DEF-123",
    ),
    ("secret", "https://bob:pa55w0rd@registry.example.com/x", "pa55w0rd"),
    ("container", f"task_memcg=/docker/{CONTAINER},task=x", CONTAINER),
    ("container", "container 3f4e5d6c7b8a died", "3f4e5d6c7b8a"),
    ("pod", "/kubepods/burstable/pod1b2c3d4e-0000-4111-8222-333344445555/x", "1b2c3d4e-0000-4111-8222-333344445555"),
    ("path", "open /data/acme/params/v28.params", "/data/acme/params"),
    ("path", "file:///srv/acme/private", "/srv/acme/private"),
    ("path", r"C:\Users\carol\run.log opened", r"C:\Users\carol"),
]


@pytest.mark.parametrize(("kind", "text", "secret"), PLANTED)
def test_a_planted_name_becomes_an_alias_of_its_kind(kind, text, secret):
    redactor = Redactor()
    redacted = redactor(text)
    assert secret not in redacted
    assert f"<{kind}-1>" in redacted
    assert redactor.count >= 1


@pytest.mark.parametrize("text", [text for _, text, _ in PLANTED])
def test_what_is_redacted_once_stays_as_it_is(text):
    redactor = Redactor()
    once = redactor(text)
    assert redactor(once) == once


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-19T02:25:30.020345Z  INFO cuzk_core::pinned_pool: pinned pool: checkout (reuse) size_gib=3.882612854242325 free_remaining=0",
        "job enqueued job_id=ps-8364-62898-1 proof_kind=porep-c2 circuit_id=porep-32g",
        "TIMELINE,562500,SYNTH_START,ps-3256-22625-6,partition=6",
        "memory: usage 358612992kB, limit 358612992kB, failcnt 3446",
        "serving on 0.0.0.0:9820 and [::]:80, 127.0.0.1",
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/proofs/gpu,task_memcg=/proofs/gpu/a",
        "02:16:12 40.2 GiB / 342 GiB",
        "total 367219703808 bytes, pid 123456789012",
        "root 0 /sys/fs/cgroup/memory/memory.usage_in_bytes /proc/123/status",
        "GPU 0000:3b:00.0, driver 570.86, run.log:1233, mem.csv, lib.rs",
        "bellperson::groth16::prover::supraseal took 18.87s a=22",
        "max_partitions_in_budget=23 effective_lookahead=23 synth_worker_count=8",
    ],
)
def test_what_the_analysis_lives_by_is_left(text):
    assert Redactor()(text) == text


def test_the_same_thing_has_the_same_alias_and_other_things_others():
    redactor = Redactor()
    assert redactor("10.0.0.1 10.0.0.2 10.0.0.1") == "<ip-1> <ip-2> <ip-1>"
    assert redactor("from 10.0.0.2") == "from <ip-2>"
    assert redactor.count == 2


def test_a_containers_short_and_long_id_are_one_container():
    redactor = Redactor()
    assert redactor(f"/docker/{CONTAINER} is {CONTAINER[:12]}") == "/docker/<container-1> is <container-1>"


def test_a_hosts_short_and_full_name_are_one_host():
    redactor = Redactor()
    redactor.learn("hostname=gpu7")
    assert redactor("gpu7.acme.internal alias gpu7") == "<host-1> alias <host-1>"


def test_the_last_component_of_a_files_path_stays_and_its_folder_is_the_same_alias():
    redactor = Redactor()
    assert redactor("/data/acme/run.log:12 and /data/acme/mem.csv.") == "<path-1>/run.log:12 and <path-1>/mem.csv."
    assert redactor("under /data/acme now") == "under <path-1> now"


def test_a_user_that_one_line_states_is_replaced_in_all_others():
    redactor = Redactor()
    redactor.learn("HOME=/home/mallory")
    assert redactor("mallory-run.log by mallory") == "<user-1>-run.log by <user-1>"


def test_a_cgroups_structure_stays_without_its_ids():
    text = f"oom_memcg=/kubepods.slice/kubepods-pod1b2c3d4e_0000_4111_8222_333344445555.slice/cri-containerd-{CONTAINER}.scope"
    assert Redactor()(text) == "oom_memcg=/kubepods.slice/kubepods-pod<pod-1>.slice/cri-containerd-<container-1>.scope"


@given(st.text(max_size=300))
def test_any_text_is_redacted_without_a_fault(text):
    assert isinstance(Redactor()(text), str)


@given(st.lists(st.sampled_from([text for _, text, _ in PLANTED]), min_size=1, max_size=6).map(" ; ".join))
def test_any_mixture_of_planted_names_is_stable(text):
    redactor = Redactor()
    once = redactor(text)
    assert redactor(once) == once


@pytest.mark.parametrize(
    "text", ["a." * 100_000, "/a" * 100_000, "token" * 50_000, "0:" * 50_000, "A1b" * 50_000, "@" * 100_000]
)
def test_a_huge_line_takes_no_time_to_speak_of(text):
    assert isinstance(Redactor()(text), str)


def planted_result():
    result = factory.incident()
    secrets = [text for _, text, _ in PLANTED]
    numbers = iter(range(10**9))
    kill = Kill(
        time=None, constraint="memcg", killer="kernel", oom_memcg=f"/docker/{CONTAINER}", task_memcg="/acme/gpu", victim="cuzk",
        pid=1, trigger=None, usage=1, limit=1, failcnt=0, total_vm=1, anon_rss=1, file_rss=0, shmem_rss=0, pgtables=0,
        oom_group=False, complete=True, lines=["/data/acme/params/dmesg.txt:1"],
    )  # fmt: skip
    hostile = mapped(
        msgspec.structs.replace(result, partitions=[]), lambda old: f"{old} {secrets[next(numbers) % len(secrets)]}"
    )
    return msgspec.structs.replace(hostile, partitions=result.partitions, kills=[kill])


def test_nothing_planted_survives_in_any_report():
    result = redact_result(planted_result())
    timeline = factory.incident_timeline()
    reports = {
        "json": json.render(result).decode(),
        "md": markdown.render(result),
        "text": terminal.render_text(result, timeline),
        "perfetto": perfetto.render(result, timeline).decode(),
        "html": html.render(result, timeline, markdown=markdown.render(result)),
    }
    survivors = {(name, secret) for name, report in reports.items() for _, _, secret in PLANTED if secret in report}
    assert survivors == set()


def test_the_result_says_that_it_is_redacted_and_keeps_its_figures_and_job_ids():
    before, after = planted_result(), redact_result(planted_result())
    assert after.warnings[-1].startswith("Redacted: ")
    assert after.arithmetic.limit.best == before.arithmetic.limit.best
    assert after.ending.time == before.ending.time
    assert [life.job for life in after.partitions] == [life.job for life in before.partitions]
    assert [source.sha256 for source in after.sources] == [source.sha256 for source in before.sources]
    assert after.kills[0].oom_memcg == "/docker/<container-1>"
    assert after.kills[0].task_memcg == "/acme/gpu"
    assert library.loads(json.render(after))["schema"] == "postmortem/1"


def test_citations_and_sources_keep_the_same_alias():
    result = factory.finished()
    path = "/home/mallory/runs/run.log"
    finding = msgspec.structs.replace(result.ending.evidence[0], lines=[f"{path}:5"])
    result = msgspec.structs.replace(
        result,
        sources=[msgspec.structs.replace(result.sources[0], path=path)],
        ending=msgspec.structs.replace(result.ending, evidence=[finding]),
    )
    after = redact_result(result)
    assert after.sources[0].path == "<path-1>/run.log"
    assert after.ending.evidence[0].lines == ["<path-1>/run.log:5"]
