//! The macro by which each operation is declared, once.
//!
//! [`op!`] takes an operation's name and its tensors in TensorFlow's order, each with its
//! documentation, its type in the Rust API, and its shape in the symbols of [`Dim`](super::Dim). The
//! word `steps` before a shape marks an int64 tensor of numbers of time steps. The macro makes
//!
//! * the operation's table entry, an [`Op`](super::Op);
//! * the structs of array views that the Rust API takes, documented with their shapes;
//! * `check`, which compares the views' shapes and layouts with the table;
//! * `from_source`, which fills such a struct with tensors that come in the operation's order.
//!
//! An operation that works in the memory of some inputs has a struct of its own for these. Then the
//! structs are named first, and the tensors follow in blocks, because TensorFlow mixes both kinds.

/// Declares an operation: see the module's documentation. `<$i $(, $ei)?>`, `<$p $(, $ep)?>` and
/// `<$o $(, $eo)?>` are the structs' parameters: `<'a>` or `<'a, E>`.
macro_rules! op {
    (
        $(#[$doc:meta])*
        static $OP:ident = {
            name: $name:literal, types: [$($type:ident),+], is_stock: $is_stock:literal
        };
        $(#[$inputs_doc:meta])*
        struct $Inputs:ident<$i:lifetime $(, $ei:ident)?> $inputs:tt
        $(#[$outputs_doc:meta])*
        struct $Outputs:ident<$o:lifetime $(, $eo:ident)?> { $($output:tt)* }
    ) => {
        $(#[$doc])*
        pub static $OP: $crate::ops::Op = $crate::ops::Op {
            name: $name,
            inputs: &tensors!($inputs),
            in_place: &[],
            outputs: &tensors!({ $($output)* }),
            types: &[$($crate::ops::DataType::$type),+],
            is_stock: $is_stock,
        };

        views_struct! {
            $(#[$inputs_doc])* #[derive(Clone, Copy, Debug)]
            $Inputs<$i $(, $ei)?> $inputs
        }
        views_struct! {
            $(#[$outputs_doc])* #[derive(Debug)]
            $Outputs<$o $(, $eo)?> { $($output)* }
        }

        impl<$i $(, $ei)?> $Inputs<$i $(, $ei)?> {
            /// Checks shapes and layouts of all tensors of a call.
            pub(crate) fn check(
                op: &'static $crate::ops::Op,
                use_optional: bool,
                inputs: &Self,
                outputs: &$Outputs<'_ $(, $eo)?>,
                keeps: $crate::ops::Keeps,
            ) -> Result<$crate::ops::Sizes, $crate::Error> {
                op.check_views(
                    use_optional,
                    views!(inputs $inputs),
                    views!(outputs { $($output)* }),
                    keeps,
                )
            }
        }
    };
    (
        $(#[$doc:meta])*
        static $OP:ident = {
            name: $name:literal, types: [$($type:ident),+], is_stock: $is_stock:literal
        };
        $(#[$inputs_doc:meta])*
        struct $Inputs:ident<$i:lifetime $(, $ei:ident)?>;
        $(#[$in_place_doc:meta])*
        struct $InPlace:ident<$p:lifetime $(, $ep:ident)?>;
        $(#[$outputs_doc:meta])*
        struct $Outputs:ident<$o:lifetime $(, $eo:ident)?>;
        $(inputs $inputs:tt $(in_place $in_place:tt)?)+
        outputs $outputs:tt
    ) => {
        $(#[$doc])*
        pub static $OP: $crate::ops::Op = $crate::ops::Op {
            name: $name,
            inputs: &tensors!($($inputs $($in_place)?)+),
            in_place: &names!($($($in_place)?)+),
            outputs: &tensors!($outputs),
            types: &[$($crate::ops::DataType::$type),+],
            is_stock: $is_stock,
        };

        views_struct! {
            $(#[$inputs_doc])* #[derive(Clone, Copy, Debug)]
            $Inputs<$i $(, $ei)?> $($inputs)+
        }
        views_struct! {
            $(#[$in_place_doc])* #[derive(Debug)]
            $InPlace<$p $(, $ep)?> $($($in_place)?)+
        }
        views_struct! {
            $(#[$outputs_doc])* #[derive(Debug)]
            $Outputs<$o $(, $eo)?> $outputs
        }

        impl<$i $(, $ei)?> $Inputs<$i $(, $ei)?> {
            /// Checks shapes and layouts of all tensors of a call.
            pub(crate) fn check(
                op: &'static $crate::ops::Op,
                use_optional: bool,
                inputs: &Self,
                in_place: &$InPlace<'_ $(, $ep)?>,
                outputs: &$Outputs<'_ $(, $eo)?>,
            ) -> Result<$crate::ops::Sizes, $crate::Error> {
                op.check_views(
                    use_optional,
                    views!(
                        $(inputs $inputs $(in_place $in_place)?)+
                    ),
                    views!(outputs $outputs),
                    // Those that have no memory are not read.
                    $crate::ops::Keeps::WhatIsRead,
                )
            }
        }
    };
}

/// A struct of views, one for each tensor of some blocks, and its `from_source`.
macro_rules! views_struct {
    (
        $(#[$meta:meta])*
        $Struct:ident<$($g:tt),+>
        $({$(
            $(#[$doc:meta])* $field:ident: $type:ty = $($steps:ident)? [$($dim:ident $(($n:literal))?),*]
        ),+ $(,)?})+
    ) => {
        $(#[$meta])*
        pub struct $Struct<$($g),+> {
            $($(
                $(#[$doc])*
                #[doc = ""]
                #[doc = shape!($($dim $(($n))?),*)]
                pub $field: $type,
            )+)+
        }

        impl<$($g),+> $Struct<$($g),+> {
            /// The struct whose fields are the tensors that `source` has next, in their order.
            pub fn from_source<S>(source: &mut S) -> Self
            where
                $($(S: $crate::ops::Source<$type>,)+)+
            {
                $Struct { $($($field: source.next()),+),+ }
            }
        }
    };
}

/// The table entries of the tensors of some blocks.
macro_rules! tensors {
    ($({$(
        $(#[$doc:meta])* $field:ident: $type:ty = $($steps:ident)? [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})+) => {
        [$($($crate::ops::Tensor {
            name: stringify!($field),
            dims: &[$($crate::ops::Dim::$dim $(($n))?),*],
            is_steps: is_steps!($($steps)?),
        }),+),+]
    };
}

/// Whether a tensor is marked by the word `steps`.
macro_rules! is_steps {
    () => {
        false
    };
    (steps) => {
        true
    };
}

/// The names of the tensors of some blocks.
macro_rules! names {
    ($({$(
        $(#[$doc:meta])* $field:ident: $type:ty = [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})+) => {
        [$($(stringify!($field)),+),+]
    };
}

/// What is checked of the fields of some structs: those of a block, of the struct named before it.
macro_rules! views {
    ($($from:ident {$(
        $(#[$doc:meta])* $field:ident: $type:ty = $($steps:ident)? [$($dim:ident $(($n:literal))?),*]
    ),+ $(,)?})+) => {
        [$($($crate::ops::View::from(&$from.$field)),+),+]
    };
}

/// A shape for the documentation.
macro_rules! shape {
    () => { "A scalar." };
    (Optional($n:literal)) => { "Shape: `[cell_size]`; any length where it is not used." };
    ($dim:ident $(($n:literal))? $(, $more:ident $(($m:literal))?)*) => {
        concat!(
            "Shape: `[",
            dim_name!($dim $(($n))?),
            $(", ", dim_name!($more $(($m))?),)*
            "]`."
        )
    };
}

/// A dimension as documentation and messages name it.
macro_rules! dim_name {
    (Time) => {
        "time"
    };
    (TimeOrOne) => {
        "time"
    };
    (TimeOrNone) => {
        "time"
    };
    (Batch) => {
        "batch"
    };
    (Input) => {
        "input_size"
    };
    (Cell) => {
        "cell_size"
    };
    (InputCell) => {
        "input_size + cell_size"
    };
    (InputCellOrNone) => {
        "input_size + cell_size"
    };
    (Gates($n:literal)) => {
        concat!($n, " * cell_size")
    };
}
