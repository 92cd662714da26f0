// The ops BlockGRU and BlockGRUGrad, which TensorFlow does not have.

#include <string>
#include <vector>

#include "blockcell/src/bridge.rs.h"
#include "cpp/library.h"
#include "cpp/shape_fn.h"
#include "cpp/status.h"
#include "cpp/tensors.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/errors.h"

namespace blockcell {
namespace {

namespace tf = ::tensorflow;
using tf::shape_inference::InferenceContext;

// Asks Rust what follows from the inputs' shapes, as far as they are known, for the outputs.
tf::Status InferShapes(const char* op, InferenceContext* context) {
  const Kernel* const kernel = find_kernel(op);
  if (kernel == nullptr) return tf::errors::Internal("blockcell has no kernel for ", op);
  Attributes attributes{};
  TF_RETURN_IF_ERROR(context->GetAttr("reset_after", &attributes.reset_after));
  KnownShapes known;
  for (int i = 0; i < context->num_inputs(); ++i) known.Add(context, context->input(i));
  const std::vector<PartialShape> inputs = known.Get();
  std::vector<Shape> outputs(context->num_outputs());
  TF_RETURN_IF_ERROR(
      ToTensorFlow(kernel->infer(attributes, {inputs.data(), inputs.size()}, SliceOf(&outputs))));
  for (int i = 0; i < context->num_outputs(); ++i) SetOutput(context, i, outputs[i]);
  return tf::Status();
}

tf::Status InferBlockGRU(InferenceContext* context) { return InferShapes("BlockGRU", context); }

tf::Status InferBlockGRUGrad(InferenceContext* context) {
  return InferShapes("BlockGRUGrad", context);
}

}  // namespace

void RegisterBlockGRU() {
  REGISTER_OP("BlockGRU")
      .Input("sequence_length: int64")
      .Input("x: T")
      .Input("h_prev: T")
      .Input("w_ru: T")
      .Input("w_c: T")
      .Input("b_ru: T")
      .Input("b_c: T")
      .Input("b_hc: T")
      .Output("r: T")
      .Output("u: T")
      .Output("c: T")
      .Output("hc: T")
      .Output("h: T")
      .Output("h_last: T")
      .Attr("reset_after: bool = false")
      .Attr("T: {half, float}")
      .SetShapeFn(InferBlockGRU)
      .Doc(R"doc(
Gated recurrent unit over a sequence, with a length for each row of the batch.

For row `b` of the batch and `t` from 0 to `sequence_length[b] - 1`, with `h'` the
state before the step (`h_prev` for `t = 0`, otherwise `h[t-1]`), `S` the logistic
function, `[a | b]` concatenation, `@` the matrix product, `*` the elementwise one,
and D the `input_size`:

    [r_bar | u_bar] = [x[t] | h'] @ w_ru + b_ru
    r = S(r_bar)
    u = S(u_bar)

    with reset_after = False:
        hc = r * h'
        c  = tanh(x[t] @ w_c[:D] + hc @ w_c[D:] + b_c)
    with reset_after = True:
        hc = h' @ w_c[D:] + b_hc
        c  = tanh(x[t] @ w_c[:D] + b_c + r * hc)

    h = u * h' + (1 - u) * c

For `t >= sequence_length[b]` the elements of `r`, `u`, `c`, `hc` and `h` are zero,
`x` is not read, and the state is carried on.

Without `reset_after` this is the recurrence of the op `GRUBlockCell`, with the reset
gate applied before the matrix product (Cho et al., 2014). With it, the gate is
applied after the product, as Keras's GRU layer does by default, and cuDNN. The weights
of such a layer, whose columns have the order z, r, h (z is `u` here), correspond to

    w_ru = [[kernel_r, kernel_z], [recurrent_kernel_r, recurrent_kernel_z]]
    w_c  = [[kernel_h], [recurrent_kernel_h]]
    b_ru = [bias_r, bias_z], the sums of input bias and recurrent bias with reset_after
    b_c  = bias_h, the input bias with reset_after;  b_hc = the recurrent bias_h

Half is computed in float32, and each output rounded once; the state that enters a
step is that of the step before as it is returned.

Tensors of other shapes, and lengths outside of 0 to `time`, are an
`InvalidArgumentError`. Any of the sizes may be zero. There are kernels for CPUs.

sequence_length: The number of steps of each row, `[batch]`, each from 0 to `time`.
x: The inputs of all steps, `[time, batch, input_size]`.
h_prev: The state before the first step, `[batch, cell_size]`.
w_ru: Weights of the gates, `[input_size + cell_size, 2 * cell_size]`. Rows are those
  for `x`, then those for the state; columns are the reset gate's, then the update
  gate's.
w_c: Weights of the candidate, `[input_size + cell_size, cell_size]`, rows as in `w_ru`.
b_ru: Biases of the gates, `[2 * cell_size]`, in the order of the columns of `w_ru`.
b_c: Bias of the candidate, `[cell_size]`.
b_hc: Bias of the state's product in the candidate, `[cell_size]`. Not read without
  `reset_after`, and of any length then.
r: The reset gate of each step, `[time, batch, cell_size]`.
u: The update gate of each step, `[time, batch, cell_size]`.
c: The candidate of each step, `[time, batch, cell_size]`.
hc: What the equations call hc, `[time, batch, cell_size]`.
h: The state after each step, `[time, batch, cell_size]`.
h_last: The state after each row's last step, `[batch, cell_size]`. It is `h_prev` for a
  row without steps.
reset_after: Whether the reset gate is applied after the matrix product.
)doc");

  MendShapeFn("BlockGRU", InferBlockGRU);
}

void RegisterBlockGRUGrad() {
  REGISTER_OP("BlockGRUGrad")
      .Input("sequence_length: int64")
      .Input("x: T")
      .Input("h_prev: T")
      .Input("w_ru: T")
      .Input("w_c: T")
      .Input("b_ru: T")
      .Input("b_c: T")
      .Input("b_hc: T")
      .Input("r: T")
      .Input("u: T")
      .Input("c: T")
      .Input("hc: T")
      .Input("h: T")
      .Input("h_grad: T")
      .Input("h_last_grad: T")
      .Output("x_grad: T")
      .Output("h_prev_grad: T")
      .Output("w_ru_grad: T")
      .Output("w_c_grad: T")
      .Output("b_ru_grad: T")
      .Output("b_c_grad: T")
      .Output("b_hc_grad: T")
      .Attr("reset_after: bool = false")
      .Attr("T: {half, float}")
      .SetShapeFn(InferBlockGRUGrad)
      .Doc(R"doc(
Gradients of a loss that depends on the outputs `h` and `h_last` of BlockGRU.

For `t` from `time - 1` down to 0 and the rows `b` with `t < sequence_length[b]`, with
`h'` the state before the step (`h_prev` for `t = 0`, otherwise `h[t-1]`), D the
`input_size`, and `carry` the gradient with respect to the state after the step, at first
`h_last_grad`:

    d_h     = h_grad[t] + carry
    d_c_bar = d_h * (1 - u) * (1 - c * c)
    d_u_bar = d_h * (h' - c) * u * (1 - u)

    with reset_after = False:
        d_hc    = d_c_bar @ w_c[D:]^T
        d_r_bar = d_hc * h' * r * (1 - r)
        carry   = d_h * u + d_hc * r + [d_r_bar | d_u_bar] @ w_ru[D:]^T
    with reset_after = True:
        d_hc    = d_c_bar * r
        d_r_bar = d_c_bar * hc * r * (1 - r)
        carry   = d_h * u + d_hc @ w_c[D:]^T + [d_r_bar | d_u_bar] @ w_ru[D:]^T

    x_grad[t]     = d_c_bar @ w_c[:D]^T + [d_r_bar | d_u_bar] @ w_ru[:D]^T
    w_ru_grad    += [x[t] | h']^T @ [d_r_bar | d_u_bar]
    b_ru_grad    += sum over the rows of [d_r_bar | d_u_bar]
    w_c_grad[:D] += x[t]^T @ d_c_bar
    b_c_grad     += sum over the rows of d_c_bar
    with reset_after = False:
        w_c_grad[D:] += hc^T @ d_c_bar
        b_hc_grad     = 0
    with reset_after = True:
        w_c_grad[D:] += h'^T @ d_hc
        b_hc_grad    += sum over the rows of d_hc

In the other rows the carry stays as it is, `x_grad[t, b]` is zero, and nothing is read
of the tensors that have steps. The carry that leaves the first step is `h_prev_grad`.
The values of the biases are not read at all, nor is `h[time-1]`. Half is computed in
float32, sums too, and each output is rounded once.

Tensors of other shapes, and lengths outside of 0 to `time`, are an
`InvalidArgumentError`. Any of the sizes may be zero. There are kernels for CPUs.

sequence_length: As it was given to BlockGRU, `[batch]`.
x: As it was given to BlockGRU, `[time, batch, input_size]`.
h_prev: As it was given to BlockGRU, `[batch, cell_size]`.
w_ru: As it was given to BlockGRU, `[input_size + cell_size, 2 * cell_size]`.
w_c: As it was given to BlockGRU, `[input_size + cell_size, cell_size]`.
b_ru: As it was given to BlockGRU, `[2 * cell_size]`.
b_c: As it was given to BlockGRU, `[cell_size]`.
b_hc: As it was given to BlockGRU, `[cell_size]`, or any length without `reset_after`.
r: As BlockGRU returned it, `[time, batch, cell_size]`.
u: As BlockGRU returned it, `[time, batch, cell_size]`.
c: As BlockGRU returned it, `[time, batch, cell_size]`.
hc: As BlockGRU returned it, `[time, batch, cell_size]`.
h: As BlockGRU returned it, `[time, batch, cell_size]`.
h_grad: The gradient with respect to `h`, `[time, batch, cell_size]`.
h_last_grad: The gradient with respect to `h_last`, `[batch, cell_size]`.
x_grad: The gradient with respect to `x`, of its shape.
h_prev_grad: The gradient with respect to `h_prev`, of its shape.
w_ru_grad: The gradient with respect to `w_ru`, of its shape.
w_c_grad: The gradient with respect to `w_c`, of its shape.
b_ru_grad: The gradient with respect to `b_ru`, of its shape.
b_c_grad: The gradient with respect to `b_c`, of its shape.
b_hc_grad: The gradient with respect to `b_hc`, of its shape. Zero without `reset_after`.
reset_after: As it was given to BlockGRU.
)doc");

  MendShapeFn("BlockGRUGrad", InferBlockGRUGrad);
}

}  // namespace blockcell
