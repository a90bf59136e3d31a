use uuid::Uuid;

use super::*;

fn id(nth: u128) -> SegmentId {
    SegmentId(Uuid::from_u128(nth))
}

struct House {
    dir: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("context/vectors.bin")
    }

    fn open(&self) -> VectorFile {
        VectorFile::open(self.path(), Embedding::new("hash", 3)).unwrap()
    }

    fn filled(&self, count: u128) -> VectorFile {
        let mut vectors = self.open();
        for nth in 0..count {
            assert!(vectors.add(id(nth), &[nth as f32, 0.5, -1.0]).unwrap());
        }
        vectors.commit().unwrap();
        vectors
    }

    fn damage(&self, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = std::fs::read(self.path()).unwrap();
        change(&mut bytes);
        std::fs::write(self.path(), bytes).unwrap();
    }

    /// Opens a damaged file, and checks that the next write repairs it.
    fn mended(&self) -> (Vec<VectorFault>, usize) {
        let mut vectors = self.open();
        let (faults, left) = (vectors.take_faults(), vectors.ids().len());
        assert!(vectors.take_faults().is_empty(), "told once");
        for nth in 0..5 {
            vectors.add(id(nth), &[nth as f32, 0.5, -1.0]).unwrap();
        }
        vectors.commit().unwrap();
        let mut again = self.open();
        assert_eq!((again.take_faults(), again.ids().len()), (vec![], 5));
        assert_eq!(again.get(id(4)), Some(&[4.0, 0.5, -1.0][..]));
        (faults, left)
    }
}

#[test]
fn vectors_come_back_as_they_were() {
    let house = House::new();
    assert!(house.open().ids.is_empty() && !house.path().exists());
    let mut vectors = house.filled(3);
    assert!(!vectors.add(id(1), &[9.0, 9.0, 9.0]).unwrap());
    vectors.add(id(7), &[7.0, 0.0, 0.0]).unwrap();
    vectors.commit().unwrap();
    let mut again = house.open();
    assert_eq!(again.take_faults(), []);
    assert_eq!(again.iter().collect::<Vec<_>>(), vectors.iter().collect::<Vec<_>>());
    assert_eq!((again.ids().len(), again.get(id(7))), (4, Some(&[7.0, 0.0, 0.0][..])));
    let bytes = std::fs::read(house.path()).unwrap();
    assert_eq!(bytes.len(), 16 + 4 * (16 + 12));
    assert_eq!(&bytes[..16], b"VMEM\x01\0\0\0\x03\0\0\0\x04\0\0\0");
}

#[test]
fn valid_rows_of_a_damaged_file_are_used() {
    let house = House::new();
    house.filled(5);
    house.damage(|bytes| bytes.truncate(bytes.len() - 30));
    assert_eq!(house.mended(), (vec![VectorFault::Truncated { count: 5, whole: 3 }], 3));
    house.damage(|bytes| bytes[16 + 28 + 16..][..4].copy_from_slice(&f32::NAN.to_le_bytes()));
    assert_eq!(house.mended(), (vec![VectorFault::NotFinite { rows: 1 }], 4));
    house.damage(|bytes| bytes[16 + 16..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes()));
    assert_eq!(house.mended(), (vec![VectorFault::NotFinite { rows: 1 }], 4));
    // Rows that are not counted yet: an append that a crash interrupted.
    house.damage(|bytes| bytes.extend([0; 40]));
    assert_eq!(house.mended(), (vec![], 5));
}

#[test]
fn a_foreign_file_is_replaced() {
    let house = House::new();
    house.filled(5);
    type Change = fn(&mut Vec<u8>);
    let changes: [Change; 5] = [
        |bytes| bytes[0] = b'X',
        |bytes| bytes[4] = 9,
        |bytes| bytes.truncate(7),
        |bytes| bytes.clear(),
        |bytes| bytes[8..12].copy_from_slice(&[0xff; 4]),
    ];
    for change in changes {
        house.damage(change);
        let (faults, left) = house.mended();
        assert!(matches!(faults[..], [VectorFault::Foreign { .. }]), "{faults:?}");
        assert_eq!(left, 0);
    }
    house.damage(|bytes| bytes[12..16].copy_from_slice(&[0xff; 4]));
    let (faults, left) = house.mended();
    assert_eq!((faults.len(), left), (1, 5), "a count that lies asks for no memory");
}

#[test]
fn vectors_of_another_embedder_are_not_used() {
    let house = House::new();
    house.filled(2);
    for other in [Embedding::new("minilm", 3), Embedding::new("hash", 4)] {
        let mut vectors = VectorFile::open(house.path(), other.clone()).unwrap();
        let fault = VectorFault::OtherEmbedder { made_by: Some("hash".into()), dimensions: 3 };
        assert_eq!(vectors.take_faults(), [fault]);
        assert!(vectors.ids.is_empty());
    }
    std::fs::remove_file(disk::beside(&house.path(), ".json")).unwrap();
    assert_eq!(house.mended().1, 0, "whose they are is not known");
}

#[test]
fn invalid_vectors_are_refused() {
    let house = House::new();
    let mut vectors = house.open();
    for wrong in [&[1.0, 2.0][..], &[1.0, f32::NAN, 0.0], &[1.0, 0.0, f32::INFINITY]] {
        let error = vectors.add(id(1), wrong).unwrap_err();
        assert!(error.to_string().contains("hash") && error.hint_text().is_some(), "{error}");
    }
    assert!(vectors.ids.is_empty());
}

#[test]
fn two_writers_keep_each_others_vectors() {
    let house = House::new();
    let mut one = house.filled(2);
    let mut two = house.open();
    one.add(id(10), &[1.0, 0.0, 0.0]).unwrap();
    one.commit().unwrap();
    two.add(id(20), &[2.0, 0.0, 0.0]).unwrap();
    two.commit().unwrap();
    let again = house.open();
    assert_eq!(again.ids().len(), 4);
    assert!(again.contains(id(10)) && again.contains(id(20)));
}

#[test]
fn two_writers_that_create_the_file_keep_each_others_vectors() {
    let house = House::new();
    let (mut one, mut two) = (house.open(), house.open());
    let keep = |vectors: &mut VectorFile, nth: u128| {
        vectors.add(id(nth), &[nth as f32, 0.0, 0.0]).unwrap();
        vectors.commit().unwrap();
        vectors.release();
    };
    keep(&mut one, 1);
    keep(&mut two, 2);
    keep(&mut one, 3);
    keep(&mut two, 1);
    let all: Vec<_> = house.open().ids().to_vec();
    assert_eq!(all, [id(1), id(2), id(3)]);
    // A read during the other's append is not valid, and not complete.
    house.damage(|bytes| bytes.extend([0; 28]));
    let mut three = house.open();
    house.damage(|bytes| bytes.truncate(bytes.len() - 28));
    keep(&mut one, 4);
    keep(&mut three, 5);
    assert_eq!((house.open().ids().len(), house.open().take_faults()), (5, vec![]));
}

#[test]
fn another_process_restores_no_removed_vectors_and_keeps_its_own() {
    let house = House::new();
    let mut one = house.filled(3);
    let mut two = house.open();
    two.add(id(8), &[8.0; 3]).unwrap();
    two.commit().unwrap();
    one.retain(|segment| segment != id(1)).unwrap();
    assert_eq!(house.open().ids(), [id(0), id(2), id(8)]);
    // The length is unchanged, so it does not show the difference.
    one.add(id(9), &[9.0; 3]).unwrap();
    one.commit().unwrap();
    two.add(id(10), &[10.0; 3]).unwrap();
    two.commit().unwrap();
    let again = house.open();
    assert_eq!(again.ids(), [id(0), id(2), id(8), id(9), id(10)]);
    assert_eq!(again.get(id(9)), Some(&[9.0; 3][..]));
}

#[test]
fn a_file_of_another_embedder_stays_until_there_are_vectors_to_write() {
    let house = House::new();
    house.filled(2);
    let before = std::fs::read(house.path()).unwrap();
    let mut other = VectorFile::open(house.path(), Embedding::new("other", 3)).unwrap();
    other.commit().unwrap();
    assert_eq!(std::fs::read(house.path()).unwrap(), before);
}

#[test]
fn vectors_that_are_not_retained_are_removed_from_the_disk() {
    let house = House::new();
    let mut vectors = house.filled(5);
    vectors.retain(|segment| segment != id(3)).unwrap();
    assert_eq!((vectors.ids().len(), vectors.get(id(4))), (4, Some(&[4.0, 0.5, -1.0][..])));
    let again = house.open();
    assert_eq!((again.ids().len(), again.contains(id(3))), (4, false));
}

#[test]
fn vectors_that_are_only_on_disk_survive_a_rewrite_of_the_file() {
    let house = House::new();
    let mut vectors = house.filled(4);
    vectors.release();
    assert_eq!((vectors.get(id(1)), vectors.iter().count(), vectors.ids().len()), (None, 0, 4));
    assert!(vectors.contains(id(1)) && !vectors.add(id(1), &[9.0; 3]).unwrap());
    assert!(vectors.add(id(7), &[7.0; 3]).unwrap());
    vectors.release();
    assert_eq!(vectors.get(id(7)), Some(&[7.0; 3][..]), "it is not on disk yet");
    vectors.commit().unwrap();
    vectors.release();
    vectors.retain(|one| one != id(2)).unwrap();
    let again = house.open();
    let found: Vec<_> = again.iter().map(|(id, vector)| (id, vector[0])).collect();
    assert_eq!(found, [(id(0), 0.0), (id(1), 1.0), (id(3), 3.0), (id(7), 7.0)]);
    let mut all = Vec::new();
    vectors.each(|id, vector| all.push((id, vector.to_vec()))).unwrap();
    assert!(all.iter().map(|(id, vector)| (*id, vector.as_slice())).eq(again.iter()));
}

#[test]
fn a_file_is_read_row_by_row_with_what_others_and_this_process_added() {
    let house = House::new();
    let mut other = house.filled(3);
    let mut vectors = VectorFile::read(house.path(), Embedding::new("hash", 3), |_, _| {}).unwrap();
    assert_eq!((vectors.ids().len(), vectors.iter().count()), (3, 0));
    assert!(other.add(id(5), &[5.0; 3]).unwrap());
    other.commit().unwrap();
    assert!(vectors.add(id(7), &[7.0; 3]).unwrap());
    let mut all = Vec::new();
    vectors.each(|id, vector| all.push((id, vector[0]))).unwrap();
    assert_eq!(all, [(id(0), 0.0), (id(1), 1.0), (id(2), 2.0), (id(5), 5.0), (id(7), 7.0)]);
    assert_eq!(vectors.iter().collect::<Vec<_>>(), [(id(7), &[7.0; 3][..])]);
    vectors.commit().unwrap();
    assert_eq!(house.open().ids().len(), 5);
}

#[test]
fn a_damaged_file_is_held_until_it_is_rewritten() {
    let house = House::new();
    drop(house.filled(4));
    let bytes = std::fs::read(house.path()).unwrap();
    std::fs::write(house.path(), &bytes[..bytes.len() - 5]).unwrap();
    let mut vectors = VectorFile::read(house.path(), Embedding::new("hash", 3), |_, _| {}).unwrap();
    assert_eq!((vectors.iter().count(), vectors.take_faults().len()), (3, 1));
    assert!(vectors.add(id(9), &[9.0; 3]).unwrap());
    vectors.commit().unwrap();
    assert_eq!((house.open().ids().len(), house.open().take_faults().len()), (4, 0));
}

#[test]
fn released_vectors_of_a_deleted_file_are_lost_and_new_ones_are_kept() {
    let house = House::new();
    let mut vectors = house.filled(4);
    vectors.release();
    std::fs::remove_file(house.path()).unwrap();
    vectors.add(id(9), &[9.0; 3]).unwrap();
    vectors.commit().unwrap();
    assert_eq!((vectors.ids().len(), vectors.contains(id(1))), (1, false));
    assert!(house.open().iter().eq([(id(9), &[9.0; 3][..])]));
}
