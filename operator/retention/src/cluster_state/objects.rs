//! The finished objects of a kind, in the order of their keys.
//!
//! There may be a hundred thousand (`docs/retention.md`, R60). In a `BTreeMap` each takes 76 bytes beside the object and its
//! key: nodes are half full while a list comes in its order, and what a node gives back when they are packed is a hole of
//! a size that nobody asks for. Here it is a pointer, in pieces of bounded length that such a list fills.

use trainjob_core::facts::ObjectKey;

use super::object::Object;

/// The most objects of a piece: so many pointers are moved when one comes or goes.
const MOST: usize = 256;

/// Objects in the order of their keys. No piece is empty.
#[derive(Debug, Default)]
pub(super) struct Objects {
    #[expect(clippy::vec_box, reason = "a pointer is moved and kept unused, not an object")]
    pieces: Vec<Vec<Box<Object>>>,
    /// How often any of them was taken in, taken out, or given out to be changed.
    changes: u64,
}

/// A piece, and where in it an object is, or would be.
type Place = (usize, Result<usize, usize>);

impl Objects {
    /// Where the object with this key is, or would be.
    fn find(&self, key: &ObjectKey) -> Place {
        let number =
            self.pieces.partition_point(|piece| piece.last().is_some_and(|last| last.key < *key));
        if let Some(piece) = self.pieces.get(number) {
            return (number, piece.binary_search_by(|object| object.key.cmp(key)));
        }
        // After all others: at the end of the last piece.
        let last = number.saturating_sub(1);
        (last, Err(self.pieces.get(last).map_or(0, Vec::len)))
    }

    /// The object with this key.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<&Object> {
        let (number, index) = self.find(key);
        self.pieces.get(number)?.get(index.ok()?).map(|object| &**object)
    }

    /// How often any of them may have changed.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The object with this key, to be changed; its key stays.
    pub(super) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Object> {
        self.changes += 1;
        let (number, index) = self.find(key);
        self.pieces.get_mut(number)?.get_mut(index.ok()?).map(|object| &mut **object)
    }

    /// Takes in an object, in place of that with its key.
    pub(super) fn insert(&mut self, object: Object) {
        self.changes += 1;
        let object = Box::new(object);
        let (number, index) = self.find(&object.key);
        let Some(piece) = self.pieces.get_mut(number) else {
            return self.pieces.push(vec![object]);
        };
        match index {
            Ok(index) => {
                if let Some(known) = piece.get_mut(index) {
                    *known = object;
                }
            }
            Err(index) if piece.len() < MOST => piece.insert(index, object),
            // Only after all others. What comes in its order fills the pieces.
            Err(MOST) => self.pieces.push(vec![object]),
            Err(index) => {
                let mut second = piece.split_off(MOST / 2);
                match index.checked_sub(MOST / 2) {
                    Some(index) => second.insert(index, object),
                    None => piece.insert(index, object),
                }
                self.pieces.insert(number + 1, second);
            }
        }
    }

    /// Takes out the object with this key.
    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<Object> {
        self.changes += 1;
        let (number, index) = self.find(key);
        let (piece, index) = (self.pieces.get_mut(number)?, index.ok()?);
        let object = (index < piece.len()).then(|| piece.remove(index));
        if piece.is_empty() {
            self.pieces.remove(number);
        }
        object.map(|object| *object)
    }

    /// Takes out all.
    pub(super) fn clear(&mut self) {
        self.changes += 1;
        self.pieces = Vec::new();
    }

    /// All, in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Object> {
        self.pieces.iter().flatten().map(|object| &**object)
    }

    /// All, to be changed; their keys stay.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Object> {
        self.changes += 1;
        self.pieces.iter_mut().flatten().map(|object| &mut **object)
    }

    /// Those after this key; `None`: all.
    pub(super) fn after(&self, key: Option<&ObjectKey>) -> impl Iterator<Item = &Object> {
        let (number, first) = match key.map(|key| self.find(key)) {
            None => (0, 0),
            Some((number, Ok(index))) => (number, index + 1),
            Some((number, Err(index))) => (number, index),
        };
        let pieces = self.pieces.iter().skip(number).enumerate();
        let rest = pieces.flat_map(move |(number, piece)| {
            piece.iter().skip(if number == 0 { first } else { 0 })
        });
        rest.map(|object| &**object)
    }
}

#[cfg(test)]
mod tests;
