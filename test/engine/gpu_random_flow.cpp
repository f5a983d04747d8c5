// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals: counts and conditions that are constants, data, or what an iteration computes, iterators and
// stacks along any axis, lengths above the number of iterations, loops of none, in each other.
#include "gpu_random.h"

namespace gpu_random {

namespace {

using namespace nvinfer1;
using Operation = ElementWiseOperation;

constexpr int kNumbers = 8;

class Flow
{
public:
    explicit Flow(Maker& m)
        : m_(m), d_(m.draw), rows_(d_.from(1, 4)), columns_(d_.of<int>({1, 3, 4, 8, 16})),
          integers_(m.input("n", DataType::kINT32, {kNumbers}, 0, 4)),
          floats_(m.input("f", DataType::kFLOAT, {kNumbers}, -1, 4.9F))
    {}

    void run()
    {
        std::vector<ITensor*> scope{m_.input("a", DataType::kFLOAT, {rows_, columns_}, -1, 1),
                                    m_.input("b", DataType::kFLOAT, {rows_, columns_}, -1, 1)};
        for (int i = d_.from(1, 3); i > 0; --i)
            scope.push_back(d_.chance(75) ? loop(scope, 0) : conditional(scope, 0));
        m_.output(scope.back());
    }

private:
    ITensor* elementOf(ITensor* list)
    {
        return m_.n.addGather(*list, *m_.integer(d_.from(0, kNumbers - 1)), 0)->getOutput(0);
    }
    ITensor* step(std::vector<ITensor*> const& scope)
    {
        ITensor* const a = d_.of(scope);
        switch (d_.from(0, 5)) {
        case 0:
            return m_.tanh(m_.n.addMatrixMultiply(*a, MatrixOperation::kNONE,
                                                  *m_.constant({columns_, columns_}, -0.7F, 0.7F),
                                                  MatrixOperation::kNONE)
                               ->getOutput(0));
        case 1:
            return m_.tanh(m_.binary(a, m_.constant({1, columns_}, -1, 1), Operation::kSUM));
        case 2:
            return m_.binary(a, d_.of(scope), d_.of<Operation>({Operation::kMAX, Operation::kMIN}));
        default:
            return m_.tanh(
                m_.binary(a, d_.of(scope), d_.of<Operation>({Operation::kSUM, Operation::kSUB, Operation::kPROD})));
        }
    }
    ITensor* conditional(std::vector<ITensor*> const& scope, int depth)
    {
        IIfConditional* const c = m_.n.addIfConditional();
        c->setCondition(*m_.binary(elementOf(integers_), m_.integer(d_.from(0, 4)),
                                   d_.of<Operation>({Operation::kLESS, Operation::kEQUAL, Operation::kGREATER})));
        ITensor* branches[2];
        for (ITensor*& b : branches) {
            std::vector<ITensor*> inside{c->addInput(*d_.of(scope))->getOutput(0)};
            for (int i = d_.from(0, 2); i > 0; --i)
                inside.push_back(inner(inside, depth)); // none: an empty branch
            b = inside.back();
        }
        return c->addOutput(*branches[0], *branches[1])->getOutput(0);
    }
    ITensor* inner(std::vector<ITensor*> const& scope, int depth)
    {
        if (depth < 2 && d_.chance(15))
            return loop(scope, depth + 1);
        return depth < 2 && d_.chance(15) ? conditional(scope, depth + 1) : step(scope);
    }

    // How a loop ends.
    struct End
    {
        int most;                                   // iterations
        bool hasSlices = false;                     // the condition reads slices of numbers
        ITensor *count = nullptr, *value = nullptr; // what it compares is below it
        enum
        {
            kNone,
            kInteger,
            kFloat,
            kLargest,
            kOutside
        } condition = kNone;
    };
    End end()
    {
        switch (d_.from(0, 8)) {
        case 0: {
            int const count = d_.from(0, 4);
            return {count, false, m_.integer(count)};
        }
        case 1:
            return {4, false, elementOf(integers_)};
        case 2: {
            int const count = d_.from(0, 4);
            return {count, false, nullptr, m_.integer(count), End::kInteger};
        }
        case 3:
            return {4, false, nullptr, elementOf(integers_), End::kInteger};
        case 4:
            return {4, true, elementOf(integers_), nullptr, End::kNone};
        case 5:
            return {4, false, elementOf(integers_),
                    m_.binary(elementOf(integers_), m_.integer(d_.from(1, 3)), Operation::kLESS), End::kOutside};
        case 6:
            return {4, false, m_.integer(4), elementOf(floats_), End::kFloat};
        case 7:
            return {7, false, nullptr, elementOf(floats_), End::kLargest};
        default:
            return {5, false, nullptr, elementOf(floats_), End::kFloat};
        }
    }
    int extentFor(int most) { return std::max(most + (d_.chance(4) ? -1 : d_.from(0, 2)), most == 0 ? 0 : 1); }

    ITensor* loop(std::vector<ITensor*> const& scope, int depth)
    {
        End const end = this->end();
        std::string const id = std::to_string(loops_++);
        // What the loop goes along lies outside of all loops, and so may be an input.
        std::vector<int> axes;
        std::vector<ITensor*> iterated;
        for (int i = d_.from(0, 2); i > 0; --i) {
            axes.push_back(d_.from(0, 2));
            std::vector<int> dims{rows_, columns_};
            dims.insert(dims.begin() + axes.back(), std::max(extentFor(end.most), 1));
            iterated.push_back(m_.input("t" + id + "_" + std::to_string(i), DataType::kFLOAT, dims, -1, 1));
        }
        ITensor* const numbers =
            end.hasSlices ? m_.input("s" + id, DataType::kINT32, {std::max(extentFor(end.most), 1)}, 0, 4) : nullptr;
        ILoop* const l = m_.n.addLoop();
        l->setName(("loop " + id).c_str());
        if (end.count)
            l->addTripLimit(*end.count, TripLimit::kCOUNT);
        IRecurrenceLayer* const x = l->addRecurrence(*d_.of(scope));
        std::vector<ITensor*> body(scope);
        body.push_back(x->getOutput(0));
        for (size_t i = 0; i < iterated.size(); ++i)
            body.push_back(l->addIterator(*iterated[i], axes[i], end.count && d_.chance(30))->getOutput(0));
        limit(*l, end, numbers);
        for (int i = d_.from(1, 3); i > 0; --i)
            body.push_back(inner(body, depth));
        std::vector<ITensor*> of(body.end() - 1, body.end());
        of.push_back(m_.tanh(m_.binary(x->getOutput(0), body.back(), Operation::kSUM)));
        x->setInput(1, *of.back());
        of.push_back(x->getOutput(0));
        ITensor* result = l->addLoopOutput(*x->getOutput(0), LoopOutput::kLAST_VALUE)->getOutput(0);
        for (int i = d_.from(0, 3); i > 0; --i)
            result = stack(*l, of, end, depth, result);
        return result;
    }
    // A condition that makes no more than end.most iterations.
    void limit(ILoop& l, End const& end, ITensor* numbers)
    {
        ITensor* compared = nullptr;
        if (end.condition == End::kInteger || end.condition == End::kFloat) {
            bool const isInteger = end.condition == End::kInteger;
            IRecurrenceLayer* const i = l.addRecurrence(isInteger ? *m_.integer(0) : *m_.number(0));
            compared = i->getOutput(0);
            i->setInput(1, *m_.binary(compared, isInteger ? m_.integer(1) : m_.number(1), Operation::kSUM));
        } else if (end.condition == End::kLargest) {
            IRecurrenceLayer* const t = l.addRecurrence(*m_.constant({rows_, columns_}, -1, 0.9F));
            t->setInput(1, *m_.binary(t->getOutput(0), m_.constant({1, 1}, 1, 1), Operation::kSUM));
            compared = m_.n.addReduce(*t->getOutput(0), ReduceOperation::kMAX, 3, false)->getOutput(0);
        }
        if (numbers)
            l.addTripLimit(*m_.binary(l.addIterator(*numbers)->getOutput(0), m_.integer(3), Operation::kLESS),
                           TripLimit::kWHILE);
        else if (end.condition == End::kOutside)
            l.addTripLimit(*end.value, TripLimit::kWHILE);
        else if (compared)
            l.addTripLimit(*m_.binary(compared, end.value, Operation::kLESS), TripLimit::kWHILE);
    }
    // An output of the network, or summed up in what comes behind an inner loop.
    ITensor* stack(ILoop& l, std::vector<ITensor*> const& of, End const& end, int depth, ITensor* result)
    {
        int const axis = d_.from(0, 2);
        ILoopOutputLayer* const out =
            l.addLoopOutput(*d_.of(of), d_.chance(60) ? LoopOutput::kCONCATENATE : LoopOutput::kREVERSE, axis);
        if (depth > 0 || d_.chance(85))
            out->setInput(1, *m_.integer(extentFor(end.most)));
        if (depth == 0) {
            m_.output(out->getOutput(0));
            return result;
        }
        ITensor* const sum = m_.n.addReduce(*out->getOutput(0), ReduceOperation::kSUM, 1U << axis, false)->getOutput(0);
        return m_.tanh(m_.binary(result, sum, Operation::kSUM));
    }

    Maker& m_;
    Draw& d_;
    int const rows_, columns_;
    ITensor *const integers_, *const floats_;
    int loops_ = 0;
};

} // namespace

void defineFlow(Maker& m)
{
    Flow(m).run();
}

} // namespace gpu_random
