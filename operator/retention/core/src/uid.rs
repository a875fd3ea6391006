//! The UID of an object, small.
//!
//! The API server gives out UUIDs, so a UID is kept as the sixteen bytes that it stands for. Any other text is kept as
//! it is: an object from a restored backup may have one.

use std::fmt;

/// Which of all objects that ever had a name.
///
/// The order is that of the texts, as long as all are UUIDs; it is total in any case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Form);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    Uuid([u8; 16]),
    Text(Box<str>),
}

/// Before which of the sixteen bytes the text of a UUID has a hyphen.
const HYPHENS: [usize; 4] = [4, 6, 8, 10];

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(uuid(text).map_or_else(|| Form::Text(text.into()), Form::Uuid))
    }
}

/// The bytes of a UUID in its usual spelling: lower case, with hyphens. Another spelling would not come back as it was.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let mut rest = text.bytes();
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        if HYPHENS.contains(&index) && rest.next() != Some(b'-') {
            return None;
        }
        *byte = digit(rest.next()?)? << 4 | digit(rest.next()?)?;
    }
    rest.next().is_none().then_some(bytes)
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = match &self.0 {
            Form::Text(text) => return f.write_str(text),
            Form::Uuid(bytes) => bytes,
        };
        for (index, byte) in bytes.iter().enumerate() {
            let hyphen = if HYPHENS.contains(&index) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 9] = [
        "3f2a9c1e-0b7d-4c55-9a51-7e0d8a5f2b10",
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "3F2A9C1E-0B7D-4C55-9A51-7E0D8A5F2B10",
        "3f2a9c1e0b7d4c559a517e0d8a5f2b10",
        "3f2a9c1e-0b7d-4c55-9a51-7e0d8a5f2b10-",
        "3f2a9c1e-0b7d-4c55-9a51-7e0d8a5f2b1",
        "",
        "u1",
    ];

    #[test]
    fn any_text_comes_back_as_it_was() {
        for text in TEXTS {
            assert_eq!(Uid::from(text).to_string(), text);
        }
    }

    #[test]
    fn a_uuid_in_its_usual_spelling_takes_no_room_of_its_own() {
        let form = |text: &str| matches!(Uid::from(text).0, Form::Uuid(_));
        assert_eq!(TEXTS.map(form), [true, true, true, false, false, false, false, false, false]);
    }

    #[test]
    fn uuids_are_in_the_order_of_their_texts() {
        let mut texts = ["9f000000-0000-0000-0000-00000000000a", TEXTS[0], TEXTS[2], TEXTS[1]];
        let mut uids = texts.map(Uid::from);
        texts.sort_unstable();
        uids.sort_unstable();
        assert_eq!(uids.map(|uid| uid.to_string()), texts);
    }
}
