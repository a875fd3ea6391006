use trainjob_api::TrainJob;

use super::*;
use crate::{
    action::{Plan, Urgency, Waiting, WaitingChange, WaitingWrite},
    facts::{JobFacts, JobSetFacts},
    observed::{Observed, Settings},
    pass::{Answered, Class, End, Next, Over, Pass, ShownBy},
};

const START: Duration = Duration::from_secs(1_000);
const ASKED: Duration = START;

fn check() -> Action {
    Action::CheckPods { except_job_set: None, name_them: true }
}

fn none() -> Reply {
    Reply::Pods(PodCheck::default())
}

fn some() -> Reply {
    Reply::Pods(PodCheck { running: Some(RunningPods::unnamed()), stray: Some("s".into()) })
}

fn failed(class: Class) -> Result<Reply, Failure> {
    Err(Failure { class, reached: true })
}

/// A pass that carries out this plan.
fn planned(memory: &mut JobMemory, plan: Plan, now: Duration) -> Pass {
    let mut pass = Pass::new(Priority::Stop);
    assert_eq!(pass.next(memory, None, now), Next::Plan);
    let job = JobFacts::of(&TrainJob::default());
    let readings = memory.readings();
    let settings = Settings::default();
    let observed = Observed::of(&job, &readings, &settings);
    pass.planned(&observed, plan, memory, now);
    pass
}

fn planning(actions: Vec<Action>) -> Plan {
    Plan { actions, ..Plan::default() }
}

/// What is remembered of a job whose check for Pods takes long.
fn under_way() -> JobMemory {
    let mut memory = JobMemory::default();
    let mut pass = planned(&mut memory, planning(vec![check()]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
    assert_eq!(pass.asked(), Some(ASKED));
    let answered = pass.answered(&mut memory, Ok(Reply::Later), None, START);
    assert_eq!(answered, Answered::Done);
    memory
}

fn job_set(uid: &str) -> JobSetFacts {
    let json = serde_json::json!({"metadata": {"uid": uid, "resourceVersion": "1"}});
    JobSetFacts::of(&serde_json::from_value(json).unwrap())
}

#[test]
fn late_answer_is_used() {
    for (answer, pods, stray) in [
        (none(), Reading::Absent, None),
        (some(), Reading::Found(RunningPods::unnamed()), Some("s".to_owned())),
    ] {
        let mut memory = under_way();
        assert_eq!(*memory.pods(), Reading::NotRead);
        assert_eq!(memory.late_answer(ASKED, Ok(answer), Priority::Stop, START), Late::Known);
        assert_eq!(*memory.pods(), pods);
        assert_eq!(memory.readings().stray_pod, stray);
    }
}

#[test]
fn answer_that_is_waited_for_is_used() {
    let mut memory = JobMemory::default();
    let mut pass = planned(&mut memory, planning(vec![check()]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
    assert_eq!(pass.answered(&mut memory, Ok(some()), None, START), Answered::Done);
    assert_eq!(*memory.pods(), Reading::Found(RunningPods::unnamed()));
    assert_eq!(memory.readings().stray_pod, Some("s".to_owned()));
}

#[test]
fn one_check_is_under_way_for_a_job_until_it_is_answered_or_lost() {
    for (after, left) in [(0, Some(60)), (59, Some(1)), (60, None)] {
        let now = START + Duration::from_secs(after);
        let mut memory = under_way();
        let mut pass = planned(&mut memory, planning(vec![check()]), now);
        let retry =
            left.map(|left| Retry { at_least: Duration::from_secs(left), ..Retry::default() });
        let over = Next::Over(Over { end: End::Settled, retry });
        let expected = if left.is_some() { over } else { Next::Call };
        assert_eq!(pass.next(&mut memory, None, now), expected, "after {after} s");
    }
    let mut memory = under_way();
    memory.late_answer(ASKED, failed(Class::Transient), Priority::Stop, START);
    let mut pass = planned(&mut memory, planning(vec![check()]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
}

#[test]
fn other_work_goes_on_while_a_check_is_under_way() {
    let mut memory = under_way();
    let mut pass = planned(&mut memory, planning(vec![check(), Action::ReadSnapshot]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
    assert_eq!(pass.call(), Some(crate::pass::Call::Act(&Action::ReadSnapshot)));
}

#[test]
fn answer_about_a_jobset_that_is_gone_or_replaced_is_not_used() {
    let facts = JobFacts::of(&TrainJob::default());
    let gone = |memory: &mut JobMemory| memory.job_set_gone(&job_set("J"), &facts);
    let replaced = |memory: &mut JobMemory| {
        memory.job_set_shown(Some(&job_set("J")), &job_set("K"), true, ShownBy::Watch);
    };
    let changes: [&dyn Fn(&mut JobMemory); 2] = [&gone, &replaced];
    for change in changes {
        let mut memory = under_way();
        change(&mut memory);
        assert_eq!(memory.late_answer(ASKED, Ok(none()), Priority::Stop, START), Late::Outdated);
        assert_eq!(*memory.pods(), Reading::NotRead);

        // The same, of an answer that was waited for.
        let mut memory = JobMemory::default();
        let mut pass = planned(&mut memory, planning(vec![check()]), START);
        assert_eq!(pass.next(&mut memory, None, START), Next::Call);
        change(&mut memory);
        assert_eq!(pass.answered(&mut memory, Ok(none()), None, START), Answered::Done);
        assert_eq!(*memory.pods(), Reading::NotRead);
        assert_eq!(pass.next(&mut memory, None, START), Next::Plan);
    }
}

#[test]
fn answer_to_another_check_is_not_used() {
    let mut memory = under_way();
    let other = ASKED + Duration::from_secs(1);
    assert_eq!(memory.late_answer(other, Ok(none()), Priority::Stop, START), Late::Outdated);
    assert_eq!(memory, under_way());
    let nothing = &mut JobMemory::default();
    assert_eq!(nothing.late_answer(ASKED, Ok(none()), Priority::Stop, START), Late::Outdated);
    assert_eq!(*nothing, JobMemory::default());
}

#[test]
fn late_failure_is_retried_with_backoff_and_told_like_any_other() {
    let mut memory = under_way();
    let mut late = || {
        memory.pod_check = Some(ASKED);
        memory.late_answer(ASKED, failed(Class::Transient), Priority::Stop, START)
    };
    for (backoff, tell) in [(100, false), (200, false), (400, true)] {
        let retry = Retry { backoff: Duration::from_millis(backoff), ..Retry::default() };
        assert_eq!(late(), Late::Failed { retry, tell });
    }
}

fn update() -> Action {
    Action::WriteWaiting(WaitingWrite {
        uid: "U".into(),
        resource_version: "1".into(),
        change: WaitingChange::Update {
            index: 0,
            reason: trainjob_api::conditions::Reason::PodsRunning,
            message: "m".into(),
            urgency: Urgency::Coalesced,
        },
    })
}

#[test]
fn why_a_job_is_not_released_is_written_at_most_once_a_minute() {
    let mut memory = JobMemory::default();
    let mut pass = planned(&mut memory, planning(vec![update()]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
    assert_eq!(pass.answered(&mut memory, Ok(Reply::Done), None, START), Answered::Done);
    for (after, written) in [(0, false), (59, false), (60, true)] {
        let now = START + Duration::from_secs(after);
        let plan = Plan { waiting: Some(Waiting::Release), ..planning(vec![update()]) };
        let mut pass = planned(&mut memory, plan, now);
        let next = pass.next(&mut memory, None, now);
        assert_eq!(next == Next::Call, written, "after {after} s: {next:?}");
    }
}

#[test]
fn job_that_cannot_say_what_it_waits_for_is_asked_for_its_pods_all_the_same() {
    let mut memory = JobMemory::default();
    memory.readings.pods = Reading::Found(RunningPods::unnamed());
    let mut pass = planned(&mut memory, planning(vec![update()]), START);
    assert_eq!(pass.next(&mut memory, None, START), Next::Call);
    let answered = pass.answered(&mut memory, failed(Class::Denied), None, START);
    assert_eq!(answered, Answered::Failed { tell: false });
    assert_eq!(*memory.pods(), Reading::NotRead);
}

#[test]
fn list_of_all_pods_says_which_jobs_are_released_as_far_as_it_goes() {
    let key = |name: &str| ObjectKey::new("ns", name);
    let pod = serde_json::json!({
        "namespace": "ns", "name": "m-node-0", "labels": {"jobset.sigs.k8s.io/jobset-name": "m"},
    });
    let mut list = PodList::default();
    list.received(&serde_json::from_value(pod).unwrap());
    for (name, pods) in [
        ("a", Reading::Absent),
        ("m", Reading::Found(RunningPods::unnamed())),
        ("z", Reading::NotRead),
    ] {
        let mut memory = JobMemory::default();
        memory.pod_list_asked(ASKED);
        assert!(memory.checks_pods(), "{name}");
        memory.pods_listed(ASKED, &list, &key(name));
        assert_eq!((memory.pods(), memory.checks_pods()), (&pods, false), "{name}");
    }
}

#[test]
fn list_says_nothing_of_a_job_whose_jobset_came_and_went_meanwhile_or_that_asked_again() {
    let mut list = PodList::default();
    list.ended();
    let key = ObjectKey::new("ns", "job");
    let mut replaced = JobMemory::default();
    replaced.pod_list_asked(ASKED);
    replaced.job_set_shown(None, &job_set("late"), true, ShownBy::Watch);
    let mut asked_again = JobMemory::default();
    asked_again.pod_list_asked(ASKED + Duration::from_secs(1));
    for mut memory in [replaced, asked_again, JobMemory::default()] {
        memory.pods_listed(ASKED, &list, &key);
        assert_eq!(*memory.pods(), Reading::NotRead);
    }
}

#[test]
fn job_sends_no_check_of_its_own_while_the_list_is_awaited() {
    let mut memory = JobMemory::default();
    memory.pod_list_asked(ASKED);
    let mut pass = planned(&mut memory, planning(vec![check()]), START);
    let next = pass.next(&mut memory, None, START);
    assert!(matches!(next, Next::Over(Over { end: End::Settled, retry: Some(_) })), "{next:?}");
}
