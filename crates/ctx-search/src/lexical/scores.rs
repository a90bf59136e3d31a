//! A sparse set of scores by row.

/// Scores for some of the rows. Reading and clearing take time in proportion to the number of
/// scores, not of rows: a search of a million turns touches only those that share a word with the
/// query.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// By row; 0 without a score.
    values: Vec<f32>,
    /// One bit per row: whether it has a score.
    marks: Vec<u64>,
}

impl Scores {
    /// Clears all scores and resizes to `rows`.
    pub fn reset(&mut self, rows: usize) {
        self.drain(|_, _| {});
        self.values.resize(rows, 0.0);
        self.marks.resize(rows.div_ceil(64), 0);
    }

    /// Passes each score to `each`, in row order, and removes it.
    pub fn drain(&mut self, mut each: impl FnMut(u32, f32)) {
        for (word, marks) in self.marks.iter_mut().enumerate() {
            for row in bits(word, std::mem::take(marks)) {
                if let Some(value) = self.values.get_mut(row as usize) {
                    each(row, std::mem::take(value));
                }
            }
        }
    }

    /// Returns the score of a row, 0 if it has none.
    pub(crate) fn get(&self, row: u32) -> f32 {
        self.values.get(row as usize).copied().unwrap_or_default()
    }

    /// Whether a row has a score.
    pub(crate) fn has(&self, row: u32) -> bool {
        let word = self.marks.get(row as usize / 64);
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Returns the score of a row for writing, initially 0; `None` if the row does not exist.
    pub(crate) fn entry(&mut self, row: u32) -> Option<&mut f32> {
        let value = self.values.get_mut(row as usize)?;
        *self.marks.get_mut(row as usize / 64)? |= 1 << (row % 64);
        Some(value)
    }

    pub(crate) fn set(&mut self, row: u32, score: f32) {
        if let Some(value) = self.entry(row) {
            *value = score;
        }
    }

    /// Removes the score of a row.
    pub(crate) fn remove(&mut self, row: u32) {
        if self.has(row) {
            self.values[row as usize] = 0.0;
            self.marks[row as usize / 64] &= !(1 << (row % 64));
        }
    }

    /// Keeps only the scores of rows for which `keep` returns true.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32) -> bool) {
        for (word, marks) in self.marks.iter_mut().enumerate() {
            for row in bits(word, *marks).filter(|row| !keep(*row)) {
                *marks &= !(1 << (row % 64));
                self.values[row as usize] = 0.0;
            }
        }
    }

    /// Rows with their scores, in row order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        let rows = self.marks.iter().enumerate().flat_map(|(word, marks)| bits(word, *marks));
        rows.map(|row| (row, self.get(row)))
    }

    /// Changes each score.
    pub(crate) fn update(&mut self, mut change: impl FnMut(u32, &mut f32)) {
        for (word, marks) in self.marks.iter().enumerate() {
            for row in bits(word, *marks) {
                if let Some(value) = self.values.get_mut(row as usize) {
                    change(row, value);
                }
            }
        }
    }

    /// Returns the rows with at least this score, or with a score in the other set, in order.
    pub(crate) fn rows_from(&self, least: f32, other: &Self) -> Vec<u32> {
        let mut rows = Vec::new();
        for word in 0..self.marks.len().max(other.marks.len()) {
            let of = |scores: &Self| scores.marks.get(word).copied().unwrap_or_default();
            let others = of(other);
            let counts = |row: &u32| others >> (row % 64) & 1 == 1 || self.get(*row) >= least;
            rows.extend(bits(word, of(self) | others).filter(counts));
        }
        rows
    }
}

/// Returns the positions of the set bits in a 64-bit word.
fn bits(word: usize, mut marks: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = (marks != 0).then(|| marks.trailing_zeros())?;
        marks &= marks - 1;
        Some(word as u32 * 64 + at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(scores: &Scores) -> Vec<(u32, f32)> {
        scores.iter().collect()
    }

    #[test]
    fn rows_are_in_order_in_any_scoring_order() {
        let mut scores = Scores::default();
        scores.reset(200);
        for (row, score) in [(130, 3.0), (0, 1.0), (63, -1.0), (64, 0.0), (200, 9.0)] {
            scores.set(row, score);
        }
        assert_eq!(all(&scores), [(0, 1.0), (63, -1.0), (64, 0.0), (130, 3.0)]);
        assert!(scores.has(64) && !scores.has(65) && !scores.has(1_000));
        assert_eq!((scores.get(130), scores.get(131), scores.get(1_000)), (3.0, 0.0, 0.0));
    }

    #[test]
    fn removed_scores_leave_nothing_behind() {
        let mut scores = Scores::default();
        scores.reset(100);
        (0..100).for_each(|row| scores.set(row, 1.0));
        scores.remove(5);
        scores.retain(|row| row < 10);
        assert_eq!(all(&scores).len(), 9);
        scores.reset(80);
        assert!(all(&scores).is_empty());
        *scores.entry(50).unwrap() += 2.0;
        assert_eq!(all(&scores), [(50, 2.0)], "not the 1 of before");
        scores.reset(60);
        assert_eq!((scores.get(50), scores.entry(60)), (0.0, None));
    }

    #[test]
    fn rows_with_enough_score_or_a_score_in_the_other_set_are_returned() {
        let (mut one, mut two) = (Scores::default(), Scores::default());
        one.reset(10);
        two.reset(300);
        one.set(3, 1.0);
        one.set(7, 0.5);
        two.set(3, 1.0);
        two.set(299, 1.0);
        assert_eq!(
            (one.rows_from(0.0, &two), two.rows_from(0.0, &one)),
            (vec![3, 7, 299], vec![3, 7, 299])
        );
        assert_eq!(
            (one.rows_from(0.6, &two), two.rows_from(2.0, &one)),
            (vec![3, 299], vec![3, 7])
        );
    }
}
