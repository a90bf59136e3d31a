//! Faults of a vector file.

/// A fault of a vector file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VectorFault {
    /// Not a VMEM file, or another version: nothing of it is used.
    Foreign {
        /// A description of what was found.
        found: String,
    },
    /// Made by another embedder, or with other dimensions: nothing of it is used.
    OtherEmbedder {
        /// The embedder, if known.
        made_by: Option<String>,
        /// The dimensions of its vectors.
        dimensions: usize,
    },
    /// Shorter than its count, or ends within a row: the whole rows are used.
    Truncated {
        /// The number of rows according to the header.
        count: usize,
        /// The number of whole rows.
        whole: usize,
    },
    /// Rows that contain a NaN or infinity: they are skipped.
    NotFinite {
        /// The number of such rows.
        rows: usize,
    },
}

impl std::fmt::Display for VectorFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign { found } => write!(f, "the vectors are computed again: {found}"),
            Self::OtherEmbedder { made_by: Some(name), dimensions } => {
                write!(
                    f,
                    "the vectors are computed again: the file has those of {name}, with {dimensions} dimensions"
                )
            }
            Self::OtherEmbedder { made_by: None, dimensions } => {
                write!(
                    f,
                    "the vectors are computed again: the file has {dimensions} dimensions and an unknown embedder"
                )
            }
            Self::Truncated { count, whole } => {
                write!(f, "the vector file is damaged: {whole} of {count} vectors are used")
            }
            Self::NotFinite { rows } => {
                write!(
                    f,
                    "{rows} vectors are computed again: they contain values that are not finite"
                )
            }
        }
    }
}
