// The parts of batch normalisation that know nothing of OpenCL.
#pragma once

#include "ops/norm/norm.h"

namespace netcl {

BatchPlan plan_batch(const Shape& shape);  // of (N, C, ...)

void host_batch_train(const OpCall& call);
void host_batch_backward(const OpCall& call);
void host_batch_inference(const OpCall& call);

void reference_batch_train(RefCall& call);
void reference_batch_backward(RefCall& call);
void reference_batch_inference(RefCall& call);

std::vector<OpSample> batch_train_samples();
std::vector<OpSample> batch_backward_samples();
std::vector<OpSample> batch_inference_samples();

}  // namespace netcl
