use super::*;

#[test]
fn event_about_an_object_without_a_namespace_is_stored_in_default() {
    for (namespace, expected) in [(Some("a"), "a"), (None, "default")] {
        let event = Event {
            regarding: ObjectReference {
                namespace: namespace.map(str::to_owned),
                ..ObjectReference::default()
            },
            severity: Severity::Normal,
            reason: "Tripped",
            action: "Judge",
            note: String::new(),
        };
        assert_eq!(event.namespace(), expected);
    }
}
