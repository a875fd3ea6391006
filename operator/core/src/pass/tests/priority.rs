//! The priority of a pass, which rises when the deadline of its job comes due.

use super::*;

#[test]
fn call_that_was_planned_when_the_deadline_came_due_is_as_urgent_as_that() {
    let mut memory = JobMemory::default();
    let mut pass = Pass::new(Priority::Live);
    assert_eq!(pass.next(&mut memory, Some(Priority::Live), START), Next::Plan);
    let scene = Scene::default();
    scene.planned(&mut pass, plan(vec![counts(), Action::ReadJobSet]), START);
    assert_eq!(pass.next(&mut memory, Some(Priority::Stop), START), Next::Call);
    assert_eq!(pass.priority(), Priority::Stop);
    for known in [Some(Priority::Live), None] {
        pass.next(&mut memory, known, START);
        assert_eq!(pass.priority(), Priority::Stop, "it does not fall: {known:?}");
    }
}
