// What kernel_record says to the layer that pretends to be a device.
#pragma once

extern "C" {

// What the launches from here on are made for; kept with each of them.
void pretend_layer_tag(const char* tag);
// Writes all launches so far, one line each: tag, program, kernel, items of a work-group (0: left
// to the driver), bytes of local memory given as arguments. 0: could not be written.
int pretend_layer_write(const char* path);
}
