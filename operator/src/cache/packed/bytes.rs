//! The bytes of a form.

use serde::{Serialize, de::DeserializeOwned};

/// With what tells that they are few, these are fifty-six bytes, and with what an allocator has for itself sixty-four.
const SHORT: usize = 55;

/// The bytes of a form. A pointer to them is half as long as one to any number of bytes would be.
#[derive(Debug)]
pub(super) enum Bytes {
    /// So many or fewer, with zeros behind them.
    Short([u8; SHORT]),
    /// More.
    Long(Box<[u8]>),
}

impl Bytes {
    #[expect(
        clippy::expect_used,
        reason = "a form has neither maps nor sequences of unknown length"
    )]
    pub(super) fn pack(form: &impl Serialize) -> Self {
        let form = postcard::to_allocvec(form).expect("a form can be written");
        let mut short = [0; SHORT];
        match short.get_mut(..form.len()) {
            Some(begin) => {
                begin.copy_from_slice(&form);
                Self::Short(short)
            }
            None => Self::Long(form.into_boxed_slice()),
        }
    }

    #[expect(clippy::expect_used, reason = "who calls this has packed such a form")]
    pub(super) fn unpack<F: DeserializeOwned>(&self) -> F {
        postcard::from_bytes(self.all()).expect("what was written can be read")
    }

    /// Reads what a form begins with.
    #[expect(clippy::expect_used, reason = "who calls this has packed a form that begins so")]
    pub(super) fn beginning<B: DeserializeOwned>(&self) -> B {
        postcard::take_from_bytes(self.all()).expect("what was written can be read").0
    }

    fn all(&self) -> &[u8] {
        match self {
            Self::Short(bytes) => bytes,
            Self::Long(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_five_bytes_and_what_tells_so_are_fifty_six() {
        assert_eq!(size_of::<Bytes>(), 56);
        for length in [0, 1, 53, 54, 55, 300] {
            // With its length before it.
            let text = "x".repeat(length);
            let bytes = Bytes::pack(&text);
            assert_eq!(matches!(bytes, Bytes::Short(_)), length < SHORT, "{length}");
            assert_eq!(bytes.unpack::<String>(), text);
        }
    }
}
