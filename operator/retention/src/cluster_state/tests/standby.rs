//! A process that does not lead.

use super::*;

#[test]
fn nothing_is_evaluated_before_the_process_leads() {
    let mut scene = Scene::before_the_list(vec![ttl(60)]);
    scene.state.stand_by();
    scene.list(&[finished("j", 7, 0)], at(60));
    assert_eq!(scene.evaluate(at(60)), Vec::<String>::new());
    let effects = scene.see("k", &finished("k", 7, 0), at(61));
    assert_eq!(effects, Effects::default(), "it is remembered");
    assert_eq!(scene.look("j", at(61)), Step::Idle);
    assert_eq!(scene.state.record(&Uid::from("p")), None, "another process judges");

    assert!(scene.state.take_over().evaluate);
    assert_eq!(scene.evaluate(at(62)), ["j", "k"]);
    assert!(scene.deletes("j", at(62)) && scene.deletes("k", at(62)));
    assert_eq!(scene.state.take_over(), Effects::default(), "it leads already");
}

#[test]
fn a_process_that_takes_over_judges_by_what_the_one_before_has_stored() {
    let jobs: Vec<_> = (0..60).map(|index| finished(&format!("j{index:02}"), 7, 0)).collect();
    let mut leader = Scene::new(vec![ttl(60)], &jobs, at(0));
    leader.store(at(50));
    let mut scene = Scene::before_the_list(vec![]);
    scene.state.stand_by();
    scene.record = leader.record.clone();
    scene.set(ttl(60));
    scene.list(&jobs, at(55));
    scene.state.take_over();
    assert_eq!(scene.evaluate(at(70)).len(), 60);
    assert_eq!(scene.tripped(), None, "they came due while nobody led");
    assert!(scene.deletes("j00", at(70)));
}
