//! An inverted index over facts.

use std::collections::HashMap;

use super::words::word_set;

/// An inverted index from words to the positions of facts.
#[derive(Debug, Default)]
pub(super) struct Index {
    places: HashMap<Box<str>, Vec<u32>>,
    len: usize,
}

/// A fact that shares words with a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Match {
    pub(super) place: usize,
    /// The number of query words it contains.
    pub(super) words: usize,
    /// The share of the query's weight that it contains, 0 to 1; rare words weigh more.
    pub(super) score: f32,
}

impl Index {
    /// Adds a fact at the next position.
    pub(super) fn push(&mut self, text: &str) {
        let place = self.len as u32;
        self.len += 1;
        self.enter(place, text);
    }

    /// Replaces the text of a fact.
    pub(super) fn change(&mut self, place: usize, old: &str, new: &str) {
        for word in word_set(old) {
            if let Some(places) = self.places.get_mut(word.as_str()) {
                places.retain(|&p| p as usize != place);
            }
        }
        self.enter(place as u32, new);
    }

    fn enter(&mut self, place: u32, text: &str) {
        for word in word_set(text) {
            let places = self.places.entry(word.into()).or_default();
            match places.binary_search(&place) {
                Ok(_) => {}
                Err(at) => places.insert(at, place),
            }
        }
    }

    /// Returns the facts that share a word with the query, unordered. A word in more than `common`
    /// facts is ignored if the query has rarer words.
    pub(super) fn matches(&self, words: &[String], common: usize) -> Vec<Match> {
        let mut scores = vec![(0u16, 0f32); self.len];
        let mut touched: Vec<u32> = Vec::new();
        let mut all = 0.0;
        let found: Vec<Option<&Vec<u32>>> =
            words.iter().map(|word| self.places.get(word.as_str())).collect();
        // If every word is common, the rarest is used.
        let rarest = found.iter().flatten().map(|places| places.len()).min().unwrap_or(0);
        for places in found {
            let count = places.map_or(0, Vec::len);
            let weight = (1.0 + (self.len as f32 + 0.5) / (count as f32 + 0.5)).ln();
            all += weight;
            if count > common.max(rarest) {
                continue;
            }
            for &place in places.into_iter().flatten() {
                let Some(score) = scores.get_mut(place as usize) else { continue };
                if score.0 == 0 {
                    touched.push(place);
                }
                *score = (score.0.saturating_add(1), score.1 + weight);
            }
        }
        let found = touched.into_iter().filter_map(|place| {
            let &(words, weight) = scores.get(place as usize)?;
            Some(Match { place: place as usize, words: words.into(), score: weight / all })
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(index: &Index, query: &str) -> Vec<usize> {
        let mut found: Vec<_> =
            index.matches(&word_set(query), usize::MAX).iter().map(|m| m.place).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn a_changed_text_is_found_only_by_its_new_words() {
        let mut index = Index::default();
        index.push("server port 3000");
        index.push("database host");
        index.change(0, "server port 3000", "server port 8080");
        assert_eq!(places(&index, "3000"), [] as [usize; 0]);
        assert_eq!(places(&index, "8080 host"), [0, 1]);
    }

    #[test]
    fn the_score_is_the_matched_share_of_the_query() {
        let mut index = Index::default();
        index.push("server port");
        index.push("server host");
        let found = index.matches(&word_set("server port"), usize::MAX);
        let score = |place| found.iter().find(|m| m.place == place).unwrap().score;
        assert!((score(0) - 1.0).abs() < 1e-6 && score(1) < 0.5);
    }
}
