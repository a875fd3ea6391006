//! The items of a list, one by one, while its text arrives.
//!
//! A list of a hundred thousand objects is hundreds of megabytes, of which hardly anything is kept. So the text is cut
//! into its items here, without understanding them, and only one of them is in memory at a time (`docs/retention.md`,
//! R61; `docs/decisions.md`, 41).

use std::str::{self, Utf8Error};

use memchr::memchr2;
use thiserror::Error;

/// Why a text is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ItemsError {
    /// It ends before it should.
    #[error("the list is cut off")]
    CutOff,
    /// It has more closing brackets than opening ones, or is no object.
    #[error("the list is no JSON object")]
    NoObject,
    /// It is no UTF-8.
    #[error("the list is no text: {0}")]
    NoText(#[from] Utf8Error),
}

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// The value of a field other than `items`, with the name of the field.
    Field(&'a str, &'a str),
    /// One of the items.
    Item(&'a str),
}

/// What the bytes at hand belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Nothing that is kept: brackets, commas, space.
    Nothing,
    /// The name of a field.
    Key,
    /// The value of a field other than `items`.
    Value,
    /// An item.
    Item,
}

/// Whether the next byte belongs to a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    /// It does not.
    Outside,
    /// It does.
    Inside,
    /// It does, behind a backslash.
    Escaped,
}

/// Cuts the text of a list into parts.
#[derive(Debug)]
pub(crate) struct Items {
    /// How many brackets are open. The fields of the list are at 1, its items at 2.
    depth: u32,
    text: Text,
    /// Whether the list of items is open.
    lists: bool,
    piece: Piece,
    key: Vec<u8>,
    kept: Vec<u8>,
    begun: bool,
}

impl Default for Items {
    fn default() -> Self {
        Self {
            depth: 0,
            text: Text::Outside,
            lists: false,
            piece: Piece::Nothing,
            key: Vec::new(),
            kept: Vec::new(),
            begun: false,
        }
    }
}

impl Items {
    /// Takes in more of the text, and hands on each part that is complete.
    ///
    /// # Errors
    ///
    /// The text is no list.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Part<'_>),
    ) -> Result<(), ItemsError> {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            rest = if self.text == Text::Inside {
                // Most of a list is within strings.
                let (plain, special) =
                    rest.split_at(memchr2(b'"', b'\\', rest).unwrap_or(rest.len()));
                self.keep_all(plain);
                special.split_first().map_or(special, |(byte, after)| {
                    self.keep(*byte);
                    self.within_string(*byte);
                    after
                })
            } else {
                self.next(*byte, &mut take)?;
                after
            };
        }
        Ok(())
    }

    /// The text has ended.
    ///
    /// # Errors
    ///
    /// It should not have.
    pub(crate) const fn end(&self) -> Result<(), ItemsError> {
        if self.begun && self.depth == 0 { Ok(()) } else { Err(ItemsError::CutOff) }
    }

    fn next(&mut self, byte: u8, take: &mut impl FnMut(Part<'_>)) -> Result<(), ItemsError> {
        if self.text != Text::Outside {
            self.keep(byte);
            self.within_string(byte);
            return Ok(());
        }
        match byte {
            b'"' => self.string_begins(),
            b':' if self.depth == 1 && self.piece == Piece::Nothing => {
                if self.key != b"items" {
                    self.begin(Piece::Value);
                }
            }
            b',' if self.depth == 1 => self.value_ends(take)?,
            b'{' | b'[' => self.open(byte),
            b'}' | b']' => self.close(byte, take)?,
            _ if self.depth == 0 && !byte.is_ascii_whitespace() => {
                return Err(ItemsError::NoObject);
            }
            _ => self.keep(byte),
        }
        Ok(())
    }

    fn keep(&mut self, byte: u8) {
        self.keep_all(&[byte]);
    }

    fn keep_all(&mut self, bytes: &[u8]) {
        match self.piece {
            Piece::Nothing => {}
            Piece::Key => self.key.extend_from_slice(bytes),
            Piece::Value | Piece::Item => self.kept.extend_from_slice(bytes),
        }
    }

    fn begin(&mut self, piece: Piece) {
        self.piece = piece;
        self.kept.clear();
    }

    fn string_begins(&mut self) {
        self.text = Text::Inside;
        if self.depth == 1 && self.piece == Piece::Nothing {
            self.piece = Piece::Key;
            self.key.clear();
        } else {
            self.keep(b'"');
        }
    }

    fn within_string(&mut self, byte: u8) {
        self.text = match (self.text, byte) {
            (Text::Inside, b'\\') => Text::Escaped,
            (Text::Inside, b'"') => Text::Outside,
            _ => Text::Inside,
        };
        if self.text == Text::Outside && self.piece == Piece::Key {
            self.key.pop();
            self.piece = Piece::Nothing;
        }
    }

    fn open(&mut self, byte: u8) {
        self.begun = true;
        if self.depth == 1 && self.piece == Piece::Nothing && byte == b'[' {
            self.lists = true;
        } else if self.depth == 2 && self.lists {
            self.begin(Piece::Item);
        }
        self.depth += 1;
        self.keep(byte);
    }

    fn close(&mut self, byte: u8, take: &mut impl FnMut(Part<'_>)) -> Result<(), ItemsError> {
        if self.depth == 1 {
            self.value_ends(take)?;
        }
        self.keep(byte);
        self.depth = self.depth.checked_sub(1).ok_or(ItemsError::NoObject)?;
        if self.depth == 2 && self.piece == Piece::Item {
            take(Part::Item(str::from_utf8(&self.kept)?));
            self.piece = Piece::Nothing;
        } else if self.depth == 1 && self.piece == Piece::Nothing {
            self.lists = false;
        }
        Ok(())
    }

    fn value_ends(&mut self, take: &mut impl FnMut(Part<'_>)) -> Result<(), ItemsError> {
        if self.piece == Piece::Value {
            take(Part::Field(str::from_utf8(&self.key)?, str::from_utf8(&self.kept)?));
        }
        self.piece = Piece::Nothing;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The fields and items of a list.
    type Parts = (Vec<(String, Value)>, Vec<Value>);

    /// The parts of a text that arrives in pieces of this size.
    fn cut(text: &str, size: usize) -> Result<Parts, ItemsError> {
        let (mut items, mut fields, mut found) = (Items::default(), Vec::new(), Vec::new());
        let json = |text: &str| serde_json::from_str(text).unwrap();
        for bytes in text.as_bytes().chunks(size) {
            items.push(bytes, |part| match part {
                Part::Field(key, value) => fields.push((key.to_owned(), json(value))),
                Part::Item(item) => found.push(json(item)),
            })?;
        }
        items.end().map(|()| (fields, found))
    }

    #[test]
    fn parts_are_found_however_the_text_arrives() {
        let items = [
            json!({"metadata": {"name": "a", "labels": {"items": "[{\"", "x": "}]\\"}}}),
            json!({}),
            json!({"items": [{"items": [1, {}]}], "ü": "☃", "n": null}),
        ];
        let metadata = json!({"resourceVersion": "7", "continue": "a,b}", "items": [1]});
        for order in [["items", "metadata"], ["metadata", "items"]] {
            let fields = order.map(|key| {
                let value = if key == "items" { json!(items) } else { metadata.clone() };
                format!("{key:?} : {value}")
            });
            let text = format!(" {{\"kind\":\"L\", {}, \"n\" : -1.5e3 }}\n", fields.join(" ,\n"));
            let expected =
                [("kind", json!("L")), ("metadata", metadata.clone()), ("n", json!(-1500.0))];
            let expected = expected.map(|(key, value)| (key.to_owned(), value));
            for size in 1..text.len() {
                let (fields, found) = cut(&text, size).unwrap();
                assert_eq!((&*fields, &*found), (&expected[..], &items[..]), "{size}");
            }
        }
    }

    #[test]
    fn a_list_may_be_empty() {
        for items in ["[]", "null", "[ ]"] {
            let (fields, found) = cut(&format!("{{\"items\":{items},\"a\":1}}"), 3).unwrap();
            assert_eq!((fields, found), (vec![("a".to_owned(), json!(1))], vec![]), "{items}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_list_at_any_place() {
        let text = r#"{"metadata":{"resourceVersion":"1"},"items":[{"a":"}"},{}]}"#;
        for end in 0..text.len() {
            assert_eq!(cut(&text[..end], 5), Err(ItemsError::CutOff), "{end}");
        }
        assert!(cut(text, 5).is_ok());
    }

    #[test]
    fn what_is_no_object_is_no_list() {
        for text in ["no", "{}}", "]", "{\"a\":1} x"] {
            assert_eq!(cut(text, 2), Err(ItemsError::NoObject), "{text}");
        }
        let mut items = Items::default();
        let broken = items.push(b"{\"items\":[{\"a\":\"\xff\"}]}", |_| {});
        assert!(matches!(broken, Err(ItemsError::NoText(_))));
    }
}
