//! The rows of AE2, each with what stands just before and behind it.

use super::{DeletedReason as D, FailedReason as F, Order, Row, Verdict, culprit, row, verdict};
use crate::{
    job::{
        Finish, FinishedHow, Job,
        Suspension::{Asked, ChangedAt, Never},
    },
    pod::{Container, Deletion, Disruption, Generations, Phase, Pod, State},
    testing::{at, container, ended_at, out_of_memory_at, pod, stopped_after, waiting_after},
};

fn failed(containers: Vec<Container>) -> Pod {
    Pod { phase: Phase::Failed, containers: containers.into(), ..pod() }
}

fn deleted(pod: Pod) -> Pod {
    Pod { deletion: Some(Deletion { at: at(500), grace: 30 }), ..pod }
}

fn disrupted_by(reason: &str, pod: Pod) -> Pod {
    Pod { disruption: Some(Box::new(Disruption { reason: reason.into(), at: None })), ..pod }
}

fn with_reason(reason: &str, pod: Pod) -> Pod {
    Pod { reason: reason.into(), ..pod }
}

fn decided(verdict: Verdict) -> Row {
    Row::Decided(verdict)
}

fn is(pod: &Pod, expected: Row, case: &str) {
    assert_eq!(row(pod, Order::Unknown), expected, "{case}");
}

#[test]
fn ae2_row_1_a_success_is_a_success_even_if_it_was_deleted_and_disrupted() {
    let succeeded = Pod { phase: Phase::Succeeded, ..disrupted_by("DeletionByPodGC", pod()) };
    is(&deleted(succeeded), decided(Verdict::Succeeded), "row 1");
}

#[test]
fn ae2_row_2_a_disruption_goes_before_what_the_status_and_the_containers_say() {
    for (reason, expected) in [
        ("PreemptionByScheduler", F::Preempted),
        ("TerminationByKubelet", F::Evicted),
        ("EvictionByEvictionAPI", F::Drained),
        ("DeletionByTaintManager", F::NodeLost),
        ("DeletionByPodGC", F::NodeLost),
        ("DeletionByDeviceTaintManager", F::DeviceTaint),
        ("SomethingNew", F::Disrupted),
    ] {
        let pod = with_reason("DeadlineExceeded", deleted(failed(vec![out_of_memory_at(400)])));
        is(&disrupted_by(reason, pod), decided(Verdict::Failed(expected)), reason);
    }
}

#[test]
fn ae2_row_3_the_reason_of_the_status_goes_before_the_missing_node() {
    for (reason, expected) in [
        ("Evicted", F::Evicted),
        ("Terminated", F::Evicted),
        ("Preempting", F::Preempted),
        ("NodeLost", F::NodeLost),
        ("DeadlineExceeded", F::Deadline),
        ("UnexpectedAdmissionError", F::Rejected),
    ] {
        let pod = Pod { node: None, ..with_reason(reason, deleted(failed(vec![]))) };
        is(&pod, decided(Verdict::Failed(expected)), reason);
    }
    let started = with_reason("Strange", failed(vec![ended_at(400, 1)]));
    is(&started, decided(Verdict::Failed(F::Error)), "a strange reason of a Pod that ran");
}

#[test]
fn ae2_row_4_a_pod_without_node_was_never_scheduled() {
    let pod = Pod { node: None, ..deleted(pod()) };
    is(&pod, decided(Verdict::Deleted(D::NeverScheduled)), "row 4");
}

#[test]
fn ae2_row_5_a_crash_loop_failed_although_its_pod_was_deleted() {
    let unseen = |code| Container { state: State::EndedUnseen, ..waiting_after(400, code) };
    let killed = Container {
        last_end: out_of_memory_at(400).last_real_end().cloned().map(Box::new),
        ..container(State::Waiting)
    };
    for (case, containers, expected) in [
        ("waits after an error", vec![waiting_after(400, 1)], decided(Verdict::Failed(F::Error))),
        ("unseen after an error", vec![unseen(2)], decided(Verdict::Failed(F::Error))),
        ("waits after it ran out of memory", vec![killed], decided(Verdict::Failed(F::OOMKilled))),
        ("waits after a success", vec![waiting_after(400, 0)], Row::Stopped),
        (
            "had just been started again",
            vec![stopped_after(3, 35)],
            decided(Verdict::Failed(F::Error)),
        ),
        ("had been started again before", vec![stopped_after(3, 41)], Row::Stopped),
        ("had just been started again after a success", vec![stopped_after(0, 1)], Row::Stopped),
        (
            "runs, and had just been started again",
            vec![Container { state: State::Running(Some(at(470))), ..waiting_after(400, 1) }],
            decided(Verdict::Failed(F::Error)),
        ),
        (
            "runs again",
            vec![Container { state: State::Running(Some(at(450))), ..waiting_after(400, 1) }],
            Row::Stopped,
        ),
        (
            "runs again, since an unknown time",
            vec![Container { state: State::Running(None), ..waiting_after(400, 1) }],
            Row::Stopped,
        ),
    ] {
        let pod = Pod { containers: containers.into(), ..deleted(pod()) };
        assert_eq!(row(&pod, Order::DeletedFirst), expected, "{case}");
    }
}

#[test]
fn ae2_row_5_the_failure_before_the_restart_is_at_fault() {
    let pod = Pod { containers: [stopped_after(3, 5)].into(), ..deleted(pod()) };
    assert_eq!(culprit(&pod).map(|(_, end)| end.exit_code), Some(3));
    let pod = Pod { deletion: None, ..pod };
    assert_eq!(culprit(&pod).map(|(_, end)| end.exit_code), Some(143), "nobody deleted it");
    let pod = Pod { containers: [stopped_after(0, 5)].into(), ..deleted(pod) };
    assert_eq!(culprit(&pod).map(|(_, end)| end.exit_code), Some(143), "it had succeeded before");
}

#[test]
fn ae2_row_6_what_ended_before_its_deletion_failed() {
    let generations = |current, observed| Some(Generations { current, observed });
    let error = || vec![ended_at(400, 1)];
    let signal = || vec![ended_at(400, 143)];
    for (case, pod, order, expected) in [
        ("not deleted", failed(error()), Order::Unknown, F::Error),
        ("not deleted, by a signal", failed(signal()), Order::Unknown, F::Error),
        ("not deleted, no container failed", failed(vec![]), Order::Unknown, F::Unknown),
        (
            "seen ended first",
            Pod { generations: generations(2, 2), ..deleted(failed(signal())) },
            Order::EndedFirst,
            F::Error,
        ),
        (
            "its status is older",
            Pod { generations: generations(2, 1), ..deleted(failed(signal())) },
            Order::Unknown,
            F::Error,
        ),
    ] {
        assert_eq!(row(&pod, order), decided(Verdict::Failed(expected)), "{case}");
    }
}

#[test]
fn ae2_row_7_what_ended_by_its_deletion_was_stopped() {
    let generations = Some(Generations { current: 2, observed: 2 });
    let error = || vec![ended_at(600, 1)];
    for (case, pod, order) in [
        (
            "seen deleted first, exit 1",
            Pod {
                generations: Some(Generations { current: 2, observed: 1 }),
                ..deleted(failed(error()))
            },
            Order::DeletedFirst,
        ),
        ("its status is as new", Pod { generations, ..deleted(failed(error())) }, Order::Unknown),
        (
            "only SIGTERM",
            deleted(failed(vec![ended_at(600, 143), ended_at(600, 0)])),
            Order::Unknown,
        ),
        ("only SIGKILL", deleted(failed(vec![ended_at(600, 137)])), Order::Unknown),
        (
            "by force while it ran",
            deleted(Pod { containers: [container(State::Running(None))].into(), ..pod() }),
            Order::Unknown,
        ),
    ] {
        assert_eq!(row(&pod, order), Row::Stopped, "{case}");
    }
}

#[test]
fn ae2_row_7_the_train_job_says_why_it_was_stopped() {
    let pod = deleted(Pod {
        containers: [container(State::Running(None))].into(),
        created_at: at(100),
        ..pod()
    });
    let finished = |how, suspension| {
        Job::Finished(Finish {
            how,
            at: at(600),
            reason: String::new(),
            message: String::new(),
            suspension,
        })
    };
    let running = |suspension| Job::Running { suspension };
    for (case, job, expected) in [
        ("deadline", finished(FinishedHow::DeadlineExceeded, ChangedAt(at(500))), D::Deadline),
        ("suspended after it was created", running(ChangedAt(at(101))), D::Suspended),
        ("resumed, and created in that second", running(ChangedAt(at(100))), D::Stopped),
        ("suspended, and its condition says so later", running(Asked), D::Suspended),
        ("never suspended", running(Never), D::Stopped),
        ("failed", finished(FinishedHow::Failed, Never), D::Stopped),
        ("complete", finished(FinishedHow::Complete, Never), D::Stopped),
        ("gone", Job::Gone { suspension: Never }, D::Stopped),
        ("suspended, and gone", Job::Gone { suspension: ChangedAt(at(101)) }, D::Suspended),
    ] {
        assert_eq!(verdict(&pod, Order::Unknown, &job), Verdict::Deleted(expected), "{case}");
    }
}

#[test]
fn ae2_row_8_without_other_evidence_an_exit_code_of_its_own_is_a_failure() {
    for (case, containers, expected) in [
        ("exit 1", vec![ended_at(600, 1)], F::Error),
        ("one of two", vec![ended_at(600, 143), ended_at(600, 1)], F::Error),
        ("out of memory", vec![out_of_memory_at(600)], F::OOMKilled),
    ] {
        is(&deleted(failed(containers)), decided(Verdict::Failed(expected)), case);
    }
}

#[test]
fn the_culprit_is_the_earliest_failure_then_the_first_in_the_spec() {
    let named = |name: &str, container: Container| Container { name: name.into(), ..container };
    for (case, containers, expected) in [
        ("earliest", vec![named("a", ended_at(600, 1)), named("b", ended_at(500, 1))], Some("b")),
        (
            "first in the spec",
            vec![named("a", ended_at(500, 1)), named("b", ended_at(500, 2))],
            Some("a"),
        ),
        (
            "a success is none",
            vec![named("a", ended_at(400, 0)), named("b", ended_at(500, 2))],
            Some("b"),
        ),
        (
            "an earlier end counts",
            vec![named("a", ended_at(500, 1)), named("b", waiting_after(300, 3))],
            Some("b"),
        ),
        ("none", vec![named("a", ended_at(400, 0))], None),
    ] {
        let pod = failed(containers);
        assert_eq!(culprit(&pod).map(|(it, _)| &*it.name), expected, "{case}");
    }
}
