//! UIDs as numbers.

use uuid::Uuid;

/// The UUID that a UID is, if it is one and is written as Kubernetes writes it, so that it can be written again.
#[must_use]
pub fn uuid_of(uid: &str) -> Option<Uuid> {
    let number = Uuid::try_parse(uid).ok()?;
    let mut text = Uuid::encode_buffer();
    (number.hyphenated().encode_lower(&mut text) == uid).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uid_is_a_uuid_only_in_the_spelling_of_kubernetes() {
        let uid = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
        assert_eq!(uuid_of(uid).map(|uuid| uuid.to_string()).as_deref(), Some(uid));
        let upper = uid.to_uppercase();
        let braced = format!("{{{uid}}}");
        let plain = uid.replace('-', "");
        for other in ["", "U", &upper, &braced, &plain, &uid[..35]] {
            assert_eq!(uuid_of(other), None, "{other}");
        }
    }
}
