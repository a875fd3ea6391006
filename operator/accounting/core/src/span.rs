//! From when to when a Pod is charged (AT1 to AT3).
//!
//! The start is an instant of the API server, the end one of the node, so the end is moved into what is possible: not
//! before the start, not after now. Each move is counted. Seconds are cut off as Kubernetes stores them, at both ends, so
//! the error is below a second and has no bias.

use trainjob_api::time::Timestamp;

use crate::pod::{Container, Pod, State};

/// The time that a Pod is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: Timestamp,
    end: Timestamp,
    clamped: bool,
}

impl Span {
    /// When it begins (AT1).
    #[must_use]
    pub const fn start(self) -> Timestamp {
        self.start
    }

    /// When it ends (AT2), not before it begins.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        self.end
    }

    /// How long it is (AT3).
    #[must_use]
    pub fn seconds(self) -> u64 {
        u64::try_from(self.end.since(self.start)).unwrap_or_default()
    }

    /// Whether the end was moved into what is possible (AT3).
    #[must_use]
    pub const fn is_clamped(self) -> bool {
        self.clamped
    }
}

/// The time that this Pod, which has ended, is charged for at `now`.
#[must_use]
pub fn span(pod: &Pod, now: Timestamp) -> Span {
    if pod.node.is_none() {
        let end = pod.deletion.map_or(now, |deletion| deletion.at.min(now)).max(pod.created_at);
        return Span { start: end, end, clamped: false };
    }
    let start = pod.bound_at.unwrap_or(pod.created_at);
    let ends = pod.containers.iter().filter_map(|container| end_of(container, pod, now)).max();
    let end = ends.unwrap_or_else(|| unseen_end(pod, Some(start), now));
    let possible = end.min(now).max(start);
    Span { start, end: possible, clamped: possible != end }
}

/// When a container ended; `None` if it never started.
fn end_of(container: &Container, pod: &Pod, now: Timestamp) -> Option<Timestamp> {
    match &container.state {
        State::Ended(end) => Some(end.at),
        State::Running(since) => Some(unseen_end(pod, *since, now)),
        State::EndedUnseen => Some(unseen_end(pod, None, now)),
        // It waited to be started again and kept what it had, unless the Pod had given up.
        State::Waiting => container.last_end.as_ref().map(|last| {
            if pod.is_terminal() { last.at } else { deleted_at(pod, now).unwrap_or(now) }
        }),
    }
}

/// The best evidence of an end that nobody reported. A Pod is not ready before its containers have started, either, so
/// `Ready=False` tells of the end of one only if it changed after the start of that.
fn unseen_end(pod: &Pod, started: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let unready = pod.unready_since.filter(|since| started.is_none_or(|started| *since > started));
    let disrupted = pod.disruption.as_ref().and_then(|disruption| disruption.at);
    unready.or(disrupted).or_else(|| deleted_at(pod, now)).unwrap_or(now)
}

/// The deletion, which is set as late as the grace period lasts.
fn deleted_at(pod: &Pod, now: Timestamp) -> Option<Timestamp> {
    pod.deletion.map(|deletion| deletion.at.min(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        pod::{Deletion, Disruption, Phase},
        testing::{at, container, ended_at, pod, waiting_after},
    };

    /// Bound at 100; now is 1,000.
    fn bound() -> Pod {
        Pod { bound_at: Some(at(100)), phase: Phase::Failed, ..pod() }
    }

    fn of(pod: &Pod) -> (i64, i64, bool) {
        let span = span(pod, at(1_000));
        (span.start().0, span.end().0, span.is_clamped())
    }

    #[test]
    fn at1_the_start_is_the_binding_else_the_creation_and_without_node_there_is_no_time() {
        let done =
            |pod: Pod| Pod { containers: [ended_at(500, 0)].into(), created_at: at(50), ..pod };
        assert_eq!(of(&done(bound())), (100, 500, false));
        assert_eq!(of(&done(Pod { bound_at: None, ..bound() })), (50, 500, false));
        let deletion = Some(Deletion { at: at(700), grace: 30 });
        let unbound = Pod { node: None, deletion, ..done(bound()) };
        assert_eq!((of(&unbound), span(&unbound, at(1_000)).seconds()), ((700, 700, false), 0));
    }

    #[test]
    fn at2_the_end_is_the_latest_of_all_containers_with_the_best_evidence_for_each() {
        let running = || container(State::Running(Some(at(150))));
        let unseen = || container(State::EndedUnseen);
        let waiting = || container(State::Waiting);
        let deletion = Some(Deletion { at: at(800), grace: 0 });
        let disruption = Some(Box::new(Disruption { reason: Box::default(), at: Some(at(750)) }));
        let open = || Pod { phase: Phase::Open, deletion, ..bound() };
        for (case, pod, containers, expected) in [
            ("sidecars included", bound(), vec![ended_at(500, 0), ended_at(510, 0)], 510),
            (
                "running: not ready since",
                Pod { unready_since: Some(at(700)), disruption: disruption.clone(), ..open() },
                vec![running()],
                700,
            ),
            (
                "running: disrupted",
                Pod { disruption: disruption.clone(), ..open() },
                vec![running()],
                750,
            ),
            ("running: deleted", open(), vec![running()], 800),
            ("unseen: now", bound(), vec![unseen()], 1_000),
            (
                "unseen beside a real end",
                Pod { deletion, ..bound() },
                vec![ended_at(500, 1), unseen()],
                800,
            ),
            (
                "never ready is no end",
                Pod { unready_since: Some(at(101)), ..open() },
                vec![running()],
                800,
            ),
            ("never started adds nothing", bound(), vec![ended_at(500, 0), waiting()], 500),
            ("no container at all", open(), vec![], 800),
            ("only images pulled", open(), vec![waiting()], 800),
            ("a crash loop keeps its node", open(), vec![waiting_after(300, 1)], 800),
            ("a crash loop that was given up", bound(), vec![waiting_after(300, 1)], 300),
        ] {
            assert_eq!(of(&Pod { containers: containers.into(), ..pod }).1, expected, "{case}");
        }
    }

    #[test]
    fn at2_a_deletion_whose_grace_is_not_over_has_an_end_that_is_possible() {
        let deletion = Some(Deletion { at: at(1_030), grace: 30 });
        for containers in [vec![container(State::EndedUnseen)], vec![], vec![waiting_after(300, 1)]]
        {
            let phase = if containers.iter().any(|it| it.state == State::Waiting) {
                Phase::Open
            } else {
                Phase::Failed
            };
            let pod = Pod { deletion, phase, containers: containers.into(), ..bound() };
            assert_eq!(of(&pod), (100, 1_000, false), "{pod:?}");
        }
    }

    #[test]
    fn at3_an_impossible_end_is_moved_and_counted() {
        for (end, expected) in [
            (99, (100, 100, true)),
            (100, (100, 100, false)),
            (1_000, (100, 1_000, false)),
            (1_001, (100, 1_000, true)),
        ] {
            assert_eq!(
                of(&Pod { containers: [ended_at(end, 0)].into(), ..bound() }),
                expected,
                "{end}"
            );
        }
        // The clock of this process is behind the binding.
        let early = span(&Pod { containers: [ended_at(500, 0)].into(), ..bound() }, at(90));
        assert_eq!((early.seconds(), early.is_clamped()), (0, true));
    }
}
