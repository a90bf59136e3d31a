//! An index of a list by id that does not hold the ids.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The places of ids in a list, in five to ten bytes each: the list itself has the ids. Its methods are
/// given a function that returns the id at a place, which has to be the same at every call.
#[derive(Clone, Debug, Default)]
pub struct IdTable {
    places: HashTable<u32>,
    hasher: RandomState,
}

impl IdTable {
    /// The number of ids.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no ids.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the place of an id.
    pub fn get<I: Hash + Eq>(&self, id: &I, id_at: impl Fn(u32) -> I) -> Option<u32> {
        self.places.find(self.hasher.hash_one(id), |place| id_at(*place) == *id).copied()
    }

    /// Adds the id at `place`. Returns false, and changes nothing, if the id has a place.
    pub fn insert<I: Hash + Eq>(&mut self, place: u32, id_at: impl Fn(u32) -> I) -> bool {
        let id = id_at(place);
        let hash = self.hasher.hash_one(&id);
        let rehash = |place: &u32| self.hasher.hash_one(id_at(*place));
        match self.places.entry(hash, |place| id_at(*place) == id, rehash) {
            Entry::Vacant(vacant) => {
                vacant.insert(place);
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// Removes an id and returns its place.
    pub fn remove<I: Hash + Eq>(&mut self, id: &I, id_at: impl Fn(u32) -> I) -> Option<u32> {
        let found = self.places.find_entry(self.hasher.hash_one(id), |place| id_at(*place) == *id);
        found.ok().map(|entry| entry.remove().0)
    }

    /// Makes room for so many more ids.
    pub fn reserve<I: Hash>(&mut self, more: usize, id_at: impl Fn(u32) -> I) {
        self.places.reserve(more, |place| self.hasher.hash_one(id_at(*place)));
    }

    /// Removes all ids.
    pub fn clear(&mut self) {
        self.places.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_where_the_list_has_them() {
        let list: Vec<u64> = (0..5_000).map(|n| n * 7 % 4_999).collect();
        let id_at = |place: u32| list[place as usize];
        let mut table = IdTable::default();
        table.reserve(10, id_at);
        let added: Vec<bool> = (0..5_000).map(|place| table.insert(place, id_at)).collect();
        assert_eq!(added.iter().filter(|added| !**added).count(), 1, "0 is there twice");
        assert_eq!((table.len(), table.get(&0, id_at)), (4_999, Some(0)));
        for (place, id) in (0..).zip(&list[..4_999]) {
            assert_eq!(table.get(id, id_at), Some(place));
        }
        assert_eq!(table.remove(&0, id_at), Some(0));
        assert_eq!((table.get(&0, id_at), table.remove(&0, id_at)), (None, None));
        assert!(table.insert(4_999, id_at) && table.get(&0, id_at) == Some(4_999));
        table.clear();
        assert!(table.is_empty() && table.get(&7, id_at).is_none());
    }
}
