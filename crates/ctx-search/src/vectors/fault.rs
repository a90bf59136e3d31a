//! Faults of a vector file.

/// A fault of a vector file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VectorFault {
    /// Not a VMEM file, or another version: nothing of it is used.
    #[error("the vectors are computed again: {found}")]
    Foreign {
        /// A description of what was found.
        found: String,
    },
    /// Made by another embedder, or with other dimensions: nothing of it is used.
    #[error(
        "the vectors are computed again: the file has {}",
        described(made_by.as_deref(), *dimensions)
    )]
    OtherEmbedder {
        /// The embedder, if known.
        made_by: Option<String>,
        /// The dimensions of its vectors.
        dimensions: usize,
    },
    /// Shorter than its count, or ends within a row: the whole rows are used.
    #[error("the vector file is damaged: {whole} of {count} vectors are used")]
    Truncated {
        /// The number of rows according to the header.
        count: usize,
        /// The number of whole rows.
        whole: usize,
    },
    /// Rows that contain a NaN or infinity: they are skipped.
    #[error("{rows} vectors are computed again: they contain values that are not finite")]
    NotFinite {
        /// The number of such rows.
        rows: usize,
    },
}

fn described(made_by: Option<&str>, dimensions: usize) -> String {
    match made_by {
        Some(name) => format!("those of {name}, with {dimensions} dimensions"),
        None => format!("{dimensions} dimensions and an unknown embedder"),
    }
}
