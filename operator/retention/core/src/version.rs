//! The version of an object, small.
//!
//! The API server gives out numbers, so a version is kept as the number that it stands for. Any other text is kept as it
//! is: versions are opaque.

use std::fmt;

/// Which version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(Form);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Number(u64),
    Text(Box<str>),
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self(number(text).map_or_else(|| Form::Text(text.into()), Form::Number))
    }
}

/// The number in its usual spelling: digits, of which the first is no zero. Another spelling would not come back as it was.
fn number(text: &str) -> Option<u64> {
    let is_usual = text.starts_with(|first| matches!(first, '1'..='9'));
    text.parse().ok().filter(|_| is_usual)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Number(number) => fmt::Display::fmt(number, f),
            Form::Text(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_comes_back_as_it_was() {
        for (text, is_number) in [
            ("7", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("0", false),
            ("07", false),
            ("+7", false),
            ("7a", false),
            ("", false),
        ] {
            let version = Version::from(text);
            assert_eq!(version.to_string(), text);
            assert_eq!(matches!(version.0, Form::Number(_)), is_number, "{text}");
        }
    }
}
